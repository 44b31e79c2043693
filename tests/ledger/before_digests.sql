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
INSERT INTO "takifugu_accounts" VALUES(1,'ward','','2','0','step','["country"]','1/8 0 0','1/2 0 0');
INSERT INTO "takifugu_accounts" VALUES(2,'ward','ana','1','0',NULL,NULL,'0 0 0','1/4 0 0');
INSERT INTO "takifugu_accounts" VALUES(3,'ward','bob',NULL,'0',NULL,NULL,'0 0 0','1/4 0 0');
CREATE TABLE takifugu_cells (
	account INTEGER NOT NULL, 
	start BIGINT NOT NULL, 
	cell TEXT NOT NULL, 
	own TEXT NOT NULL, 
	PRIMARY KEY (account, start, cell)
)
 WITHOUT ROWID

;
INSERT INTO "takifugu_cells" VALUES(1,0,'["fr"]','1/4 0 0');
INSERT INTO "takifugu_cells" VALUES(1,3,'["de"]','1/8 0 0');
INSERT INTO "takifugu_cells" VALUES(1,3,'["fr"]','3/8 0 0');
INSERT INTO "takifugu_cells" VALUES(1,5,'["de"]','1/8 0 0');
INSERT INTO "takifugu_cells" VALUES(1,5,'["fr"]','1/8 0 0');
INSERT INTO "takifugu_cells" VALUES(2,0,'["fr"]','1/4 0 0');
INSERT INTO "takifugu_cells" VALUES(3,0,'["fr"]','1/4 0 0');
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
INSERT INTO "takifugu_events" VALUES(1,'f5a371927f8e56e18c3ae99248b6a0f2fa622a758aa131a1fe738437829736b5','{"at":"2026-01-01T00:00:00+00:00","kind":"created","ledger":"fea3978c6ad0407989bf4ddca40fc59e","seq":1,"v":1}','created',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(2,'fe41d809677ce38134a71ce8fd80a6d12e0c3ee571f130c7ee0e0e2e7516f0f9','{"actor":"owner","analyst":null,"at":"2026-01-01T01:00:00+00:00","dataset":"ward","delta":"0/1","epsilon":"2/1","kind":"budget","seq":2,"v":1}','budget','ward',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(3,'792552879bd40c8e521ace032f31414faeaf53ae9293cb7a65e09f5ffcfbfd8b','{"actor":"owner","analyst":"ana","at":"2026-01-01T02:00:00+00:00","dataset":"ward","delta":"0/1","epsilon":"1/1","kind":"budget","seq":3,"v":1}','budget','ward','ana',NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(4,'2fd203eaf80f3de7b1b0068d82bbe80acf6513593997b00240e33516082ec93a','{"actor":"owner","analyst":null,"at":"2026-01-01T03:00:00+00:00","columns":["country"],"dataset":"ward","kind":"partition","seq":4,"v":1}','partition','ward',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(5,'b52933f1db8b2f70694e201b14150a8ea445d46857f51bdd5d6c4a1012d3be48','{"analyst":"ana","at":"2026-01-01T05:00:00+00:00","attempt":"cee149c9504b4a3db244f9f9b8884c0e","data":"data","dataset":"ward","groups":{"columns":["country"],"keys":[["fr"]]},"key":"k1","kind":"charge","loss":{"currency":"pure","epsilon":"1/4"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"aaac6e0f719a23b1ae277091b891170a0bc42bfc6f1a33cd087adb98cda5752a","secrets":"secrets","seq":5,"translation":"doubling","v":1,"window":{"end":5,"start":0,"unit":"step"}}','charge','ward','ana','k1','aaac6e0f719a23b1ae277091b891170a0bc42bfc6f1a33cd087adb98cda5752a',5);
INSERT INTO "takifugu_events" VALUES(6,'25b0a920e94b9489eecc5bdfecd9ba4c722484517dbe5577212e9ba667bb996b','{"analyst":"ana","answer":[41,null],"at":"2026-01-01T06:00:00+00:00","charge":5,"dataset":"ward","kind":"answer","seq":6,"v":1}','answer','ward','ana',NULL,NULL,5);
INSERT INTO "takifugu_events" VALUES(7,'b5638499949927040e955c07396f698c16743931a0e52756aec4903a9ad92eda','{"analyst":null,"at":"2026-01-01T07:00:00+00:00","attempt":"7bda9999de9c460280a4525a1927ef49","data":"data","dataset":"ward","groups":{"columns":["country"],"keys":[["de"],["fr"]]},"key":"k2","kind":"charge","loss":{"currency":"pure","epsilon":"1/8"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"0c360eedb1e01ce83990d4d1e9e8ee27e26c131a970a4b710796f4c8ff04133a","secrets":"secrets","seq":7,"translation":"doubling","v":1,"window":{"end":9,"start":3,"unit":"step"}}','charge','ward',NULL,'k2','0c360eedb1e01ce83990d4d1e9e8ee27e26c131a970a4b710796f4c8ff04133a',7);
INSERT INTO "takifugu_events" VALUES(8,'867cb8053548f41c1b46f5ab013736a12a2b8b67214fdbfbb6b10de55cc14950','{"analyst":null,"at":"2026-01-01T08:00:00+00:00","attempt":"edc05f9cf90b4e8b9e61c1fcef592220","data":"data","dataset":"ward","groups":null,"key":"k3","kind":"charge","loss":{"currency":"pure","epsilon":"1/8"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"3aeb588e0a30edf9821211f1dac65add09dad501731ca814d0e37edfb37c1396","secrets":"secrets","seq":8,"translation":"doubling","v":1,"window":null}','charge','ward',NULL,'k3','3aeb588e0a30edf9821211f1dac65add09dad501731ca814d0e37edfb37c1396',8);
INSERT INTO "takifugu_events" VALUES(9,'6ace4439cd4efb140565ea14ed26547780d20bd6356a0bad9ba7df5c297abc04','{"analyst":"bob","at":"2026-01-01T09:00:00+00:00","charge":5,"data":"data","dataset":"ward","groups":{"columns":["country"],"keys":[["fr"]]},"key":"k4","kind":"reuse","loss":{"currency":"pure","epsilon":"1/4"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"aaac6e0f719a23b1ae277091b891170a0bc42bfc6f1a33cd087adb98cda5752a","secrets":"secrets","seq":9,"translation":"doubling","v":1,"window":{"end":5,"start":0,"unit":"step"}}','reuse','ward','bob','k4','aaac6e0f719a23b1ae277091b891170a0bc42bfc6f1a33cd087adb98cda5752a',5);
CREATE TABLE takifugu_head (
	id INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	at VARCHAR(40) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "takifugu_head" VALUES(1,9,'6ace4439cd4efb140565ea14ed26547780d20bd6356a0bad9ba7df5c297abc04','2026-01-01T09:00:00+00:00');
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
INSERT INTO "takifugu_segments" VALUES(1,-9223372036854775808,0,'0 0 0','0 0 0');
INSERT INTO "takifugu_segments" VALUES(1,0,3,'0 0 0','1/4 0 0');
INSERT INTO "takifugu_segments" VALUES(1,3,5,'0 0 0','3/8 0 0');
INSERT INTO "takifugu_segments" VALUES(1,5,9,'0 0 0','1/8 0 0');
INSERT INTO "takifugu_segments" VALUES(1,9,9223372036854775807,'0 0 0','0 0 0');
INSERT INTO "takifugu_segments" VALUES(2,-9223372036854775808,0,'0 0 0','0 0 0');
INSERT INTO "takifugu_segments" VALUES(2,0,5,'0 0 0','1/4 0 0');
INSERT INTO "takifugu_segments" VALUES(2,5,9223372036854775807,'0 0 0','0 0 0');
INSERT INTO "takifugu_segments" VALUES(3,-9223372036854775808,0,'0 0 0','0 0 0');
INSERT INTO "takifugu_segments" VALUES(3,0,5,'0 0 0','1/4 0 0');
INSERT INTO "takifugu_segments" VALUES(3,5,9223372036854775807,'0 0 0','0 0 0');
CREATE UNIQUE INDEX takifugu_one_event_per_key ON takifugu_events ("key") WHERE "key" IS NOT NULL;
CREATE INDEX takifugu_questions ON takifugu_events (question) WHERE question IS NOT NULL;
CREATE UNIQUE INDEX takifugu_one_answer_per_charge ON takifugu_events (charge) WHERE kind = 'answer';
CREATE UNIQUE INDEX takifugu_account_names ON takifugu_accounts (dataset, analyst);
COMMIT;
