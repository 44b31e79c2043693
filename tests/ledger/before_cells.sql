BEGIN TRANSACTION;
CREATE TABLE takifugu_accounts (
	id INTEGER NOT NULL, 
	dataset TEXT NOT NULL, 
	analyst TEXT NOT NULL, 
	epsilon TEXT, 
	delta TEXT, 
	unit TEXT, 
	partition TEXT, 
	always TEXT NOT NULL, 
	worst TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "takifugu_accounts" VALUES(1,'ward','','2','0','step','["country"]','1/32 0 0','13/32 0 0');
INSERT INTO "takifugu_accounts" VALUES(2,'ward','ana','1','0',NULL,NULL,'0 0 0','1/8 0 0');
INSERT INTO "takifugu_accounts" VALUES(3,'quiet','','1','0',NULL,NULL,'0 0 0','0 0 0');
CREATE TABLE takifugu_cells (
	account INTEGER NOT NULL, 
	start BIGINT NOT NULL, 
	cell TEXT NOT NULL, 
	own TEXT NOT NULL, 
	PRIMARY KEY (account, start, cell)
)
 WITHOUT ROWID

;
INSERT INTO "takifugu_cells" VALUES(1,-9223372036854775808,'["de"]','1/16 0 0');
INSERT INTO "takifugu_cells" VALUES(1,0,'["de"]','1/16 0 0');
INSERT INTO "takifugu_cells" VALUES(1,0,'["fr"]','1/4 0 0');
INSERT INTO "takifugu_cells" VALUES(1,5,'["de"]','1/16 0 0');
INSERT INTO "takifugu_cells" VALUES(1,5,'["fr"]','1/4 0 0');
INSERT INTO "takifugu_cells" VALUES(1,10,'["de"]','1/16 0 0');
INSERT INTO "takifugu_cells" VALUES(1,20,'["de"]','1/16 0 0');
CREATE TABLE takifugu_events (
	seq INTEGER NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	body TEXT NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	dataset TEXT, 
	analyst TEXT, 
	"key" TEXT, 
	question VARCHAR(64), 
	charge BIGINT, 
	PRIMARY KEY (seq)
);
INSERT INTO "takifugu_events" VALUES(1,'bbaffa2fe36942e1e0a6c38b373e95611f03ad4579be51b45d538d5b5578fac6','{"at":"2026-01-01T00:00:00+00:00","kind":"created","ledger":"e59f13a8c7cb4f4cabe71cb8435c9c5e","seq":1,"v":1}','created',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(2,'8094c7d4964c2e58e42bc31867aa7fcb14f18219e6ff228628690b14727be163','{"actor":"owner","analyst":null,"at":"2026-01-01T00:00:01+00:00","dataset":"ward","delta":"0/1","epsilon":"2/1","kind":"budget","seq":2,"v":1}','budget','ward',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(3,'a04c99a9d084a9d64c19f9977039e5a3b967f61fa0a95085a9b5fd4e31acf835','{"actor":"owner","analyst":"ana","at":"2026-01-01T00:00:02+00:00","dataset":"ward","delta":"0/1","epsilon":"1/1","kind":"budget","seq":3,"v":1}','budget','ward','ana',NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(4,'ff5f98249a9ddac5aa786d6ee48c9b95149393c53753c73a49bdded1d6b7a53f','{"actor":"owner","analyst":null,"at":"2026-01-01T00:00:03+00:00","columns":["country"],"dataset":"ward","kind":"partition","seq":4,"v":1}','partition','ward',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(5,'23c992b2e020338b4060a9e7479c5ea6ed181af2b0af1bb990b9e93eaeb3ca64','{"actor":"owner","analyst":null,"at":"2026-01-01T00:00:04+00:00","dataset":"quiet","delta":"0/1","epsilon":"1/1","kind":"budget","seq":5,"v":1}','budget','quiet',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(6,'17e65f8d1e1662c4342c7c96a5f7235df283aaca7c2e8b600cc34ae3c6437073','{"analyst":null,"at":"2026-01-01T00:00:06+00:00","attempt":"09045f8ec7b245ccb8b74a1e2558e5e3","data":"data","dataset":"ward","groups":{"columns":["country"],"keys":[["fr"]]},"key":"key0","kind":"charge","loss":{"currency":"pure","epsilon":"1/4"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"37d939a344f7ba9e54dbc44013a78dd2e8acd4566fcd41720c7aa6211d56ce9b","secrets":"secrets","seq":6,"translation":"doubling","v":1,"window":{"end":10,"start":0,"unit":"step"}}','charge','ward',NULL,'key0','37d939a344f7ba9e54dbc44013a78dd2e8acd4566fcd41720c7aa6211d56ce9b',6);
INSERT INTO "takifugu_events" VALUES(7,'983dff3ff6c804c383ad947d70c7025df95b78b54be3e519d3b67f6f2884e184','{"analyst":null,"answer":[1,2],"at":"2026-01-01T00:00:07+00:00","charge":6,"dataset":"ward","kind":"answer","seq":7,"v":1}','answer','ward',NULL,NULL,NULL,6);
INSERT INTO "takifugu_events" VALUES(8,'9bcaea4fa08f8cae8aefc6ceacc08bea0e3e6d84399a6ed11a82560ab3cccd85','{"analyst":"ana","at":"2026-01-01T00:00:09+00:00","attempt":"76c41f142d244cc4972a5b0af3b6d499","data":"data","dataset":"ward","groups":null,"key":"key1","kind":"charge","loss":{"currency":"pure","epsilon":"1/8"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"33b43a59e4cb85030b26ed88ebf0580361dd093e0f7ad3898cf20d00c76d56df","secrets":"secrets","seq":8,"translation":"doubling","v":1,"window":{"end":20,"start":5,"unit":"step"}}','charge','ward','ana','key1','33b43a59e4cb85030b26ed88ebf0580361dd093e0f7ad3898cf20d00c76d56df',8);
INSERT INTO "takifugu_events" VALUES(9,'1bca3e882cd5a33af8cd54daf1e2df7e4498981c66faa5de60d1759c2cdc2168','{"analyst":null,"at":"2026-01-01T00:00:10+00:00","attempt":"09d5db1f280a440ba5b34ec67812e105","data":"data","dataset":"ward","groups":{"columns":["country"],"keys":[["de"]]},"key":"key2","kind":"charge","loss":{"currency":"pure","epsilon":"1/16"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"dbfdf3e578bd020f0a1b1343a497d25135e56348179378aa16b9b34dd70208cb","secrets":"secrets","seq":9,"translation":"doubling","v":1,"window":null}','charge','ward',NULL,'key2','dbfdf3e578bd020f0a1b1343a497d25135e56348179378aa16b9b34dd70208cb',9);
INSERT INTO "takifugu_events" VALUES(10,'b5bb0c3a47802c3344c0f63b539f1c426c1c38f24d7f977cc57a76d2c84ce9b6','{"analyst":null,"at":"2026-01-01T00:00:11+00:00","attempt":"2055cfc12bda4c93909826260e691a19","data":"data","dataset":"ward","groups":null,"key":"key3","kind":"charge","loss":{"currency":"pure","epsilon":"1/32"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"483e7ecc7a5ff8e09c256a2a6b508890130f9c3fa7cd37f7eb39596c82e6a58c","secrets":"secrets","seq":10,"translation":"doubling","v":1,"window":null}','charge','ward',NULL,'key3','483e7ecc7a5ff8e09c256a2a6b508890130f9c3fa7cd37f7eb39596c82e6a58c',10);
CREATE TABLE takifugu_head (
	id INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	at VARCHAR(40) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "takifugu_head" VALUES(1,10,'b5bb0c3a47802c3344c0f63b539f1c426c1c38f24d7f977cc57a76d2c84ce9b6','2026-01-01T00:00:11+00:00');
CREATE TABLE takifugu_migrations (
	place INTEGER NOT NULL, 
	name VARCHAR(100) NOT NULL, 
	PRIMARY KEY (place), 
	UNIQUE (name)
);
INSERT INTO "takifugu_migrations" VALUES(1,'0001 events in a chain');
INSERT INTO "takifugu_migrations" VALUES(2,'0002 totals by cell');
CREATE TABLE takifugu_segments (
	account INTEGER NOT NULL, 
	start BIGINT NOT NULL, 
	"end" BIGINT NOT NULL, 
	base TEXT NOT NULL, 
	peak TEXT NOT NULL, 
	PRIMARY KEY (account, start)
)
 WITHOUT ROWID

;
INSERT INTO "takifugu_segments" VALUES(1,-9223372036854775808,0,'0 0 0','1/16 0 0');
INSERT INTO "takifugu_segments" VALUES(1,0,5,'0 0 0','1/4 0 0');
INSERT INTO "takifugu_segments" VALUES(1,5,10,'1/8 0 0','1/4 0 0');
INSERT INTO "takifugu_segments" VALUES(1,10,20,'1/8 0 0','1/16 0 0');
INSERT INTO "takifugu_segments" VALUES(1,20,9223372036854775807,'0 0 0','1/16 0 0');
INSERT INTO "takifugu_segments" VALUES(2,-9223372036854775808,5,'0 0 0','0 0 0');
INSERT INTO "takifugu_segments" VALUES(2,5,20,'1/8 0 0','0 0 0');
INSERT INTO "takifugu_segments" VALUES(2,20,9223372036854775807,'0 0 0','0 0 0');
INSERT INTO "takifugu_segments" VALUES(3,-9223372036854775808,9223372036854775807,'0 0 0','0 0 0');
CREATE UNIQUE INDEX takifugu_one_answer_per_charge ON takifugu_events (charge) WHERE kind = 'answer';
CREATE UNIQUE INDEX takifugu_one_event_per_key ON takifugu_events ("key") WHERE "key" IS NOT NULL;
CREATE INDEX takifugu_questions ON takifugu_events (question) WHERE question IS NOT NULL;
CREATE UNIQUE INDEX takifugu_account_names ON takifugu_accounts (dataset, analyst);
COMMIT;
