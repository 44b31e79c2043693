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
	lost TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "takifugu_accounts" VALUES(1,'stays','','10','0',NULL,NULL,'17851170128037265/18014398509481984 0 0','17851170128037265/18014398509481984 0 0',NULL);
CREATE TABLE takifugu_cells (
	account INTEGER NOT NULL, 
	start BIGINT NOT NULL, 
	cell TEXT NOT NULL, 
	own TEXT NOT NULL, 
	PRIMARY KEY (account, start, cell)
)
 WITHOUT ROWID

;
CREATE TABLE takifugu_digests (
	account INTEGER NOT NULL, 
	start BIGINT NOT NULL, 
	path VARCHAR(32) NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (account, start, path)
)
 WITHOUT ROWID

;
INSERT INTO "takifugu_digests" VALUES(0,0,'',X'4C1413BAF279E0C39C2C7AEC1FF2F0B30343CCC12C4B84ED59D96AFACE510A84F4924B52A19ADEA8540BAA24B6258A116CCD3DC7C76090576497FACE18C467A49C207096C9E1F504FCB24DEB5D128A60B4187DA6851CB3EF9DC1AC7824B90F4400');
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
INSERT INTO "takifugu_events" VALUES(1,'fda26b42d1fce8c6fb7d249ea55e02993b9767871c69a24218fbd892a7a34dd5','{"at":"2026-11-16T00:14:17.993738+00:00","kind":"created","ledger":"03985f19efe147ce95a873775ca3f4a5","seq":1,"totals":"72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa","v":1}','created',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(2,'701705163ecf24ca747841b8ba7b2676d3a94538b4fa28d506fb74eb85d67e45','{"actor":"root","analyst":null,"at":"2026-11-16T00:14:18.042207+00:00","dataset":"stays","delta":"0/1","epsilon":"10/1","kind":"budget","seq":2,"totals":"b587829831f5b85497996c1bbc9c48146b4ecdab338759c073b2b636bb9ab68a","v":1}','budget','stays',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(3,'acf6265252f62b797329ef67031c1248d5f777e5f4f33a8d62b88e7e4b906bf0','{"analyst":null,"at":"2026-11-16T00:14:27.426000+00:00","dataset":"stays","kind":"source","marks":["bytes b3113aec:2be0e62655a6c66fec6153dada7935e64a85a232ef68638e78bc29ca9710ff8f","content b3113aec:5bc6882fa189240889233c1336ccd9455e551d2e6e39bd3af124825b4306250f","path b3113aec:ee5d9a864a79b3b643f06b374b2e8e8388a5ea61c3a6b2d8ba77b17945eb49c1"],"question":"9afaf58a1eac966966fca655a99e012a91d9eefdcf3905a58ff9d70ce16272a0","seq":3,"totals":"b587829831f5b85497996c1bbc9c48146b4ecdab338759c073b2b636bb9ab68a","v":1}','source','stays',NULL,NULL,'9afaf58a1eac966966fca655a99e012a91d9eefdcf3905a58ff9d70ce16272a0',NULL);
INSERT INTO "takifugu_events" VALUES(4,'6f7d265bc2f7197de55e4108082ec992a406541f35d1209280936aa0b5219f2f','{"analyst":null,"at":"2026-11-16T00:14:27.426000+00:00","attempt":"d23e6b2c1cd9434c87bf18ff17e621e6","cells":"dbf4b91d190244004e734b9dc1cab7f40e3ce0303a0d8f6ea79fecb1059d7317","data":"b3113aec:541abce03d41eeaa9420d62c9709ddb62fac1bf59fe6314859d07a5756a7d808","dataset":"stays","declared":"cf78e9cd796b478e1278f6ce35a18170b242a50f149613274756b406e2cd3167","groups":null,"key":"7049bece2f8948739626e2d086ccf8a8","kind":"charge","loss":{"currency":"pure","epsilon":"6096790818646877/18014398509481984"},"mechanism":{"error":{"deviation":4.158749344684087,"interval":9.0},"kind":"integer-laplace","loss":{"currency":"pure","epsilon":"6096790818646877/18014398509481984","epsilon_near":0.338439877159251},"query":"count","scale":2.954734555495231,"sensitivity":{"l1":1,"linf":1}},"naming":{"entity":"person","order":{"clock":null,"column":"step","kind":"number","ties":[],"zone":null},"protected":{"state":{"outside":"refuse","values":["clinic","home","ward"]}},"public":{"zone":{"outside":"refuse","values":["a","b"]}},"source":{"kind":"csv","path":"stays.csv"}},"prior":"a787ac1e88da3f9321c8ac491eb55a442a41e83ccdc61576f9bc0dd7ba60fb97","query":{"by":[],"column":"state","name":"count","values":["home"]},"query_fingerprint":"587f9c15b4cc37b1c33fe8d252e570213b825efff03589a8673548fc323dcaa0","question":"2a774f52eaa53069cfe90f1ab429d979a934ac8027c7acae842316730bf30bba","secrets":"a1dca114e857eb11000e62c4a310c2e922f1fafde61d53243fdb0f538ed90642","seq":4,"totals":"c545d00f2fe1dfa333755287e33d57af6bf51d11146e7c972c88b82976769cbe","translation":"82fa480429c539c5ffca405547aff674c5fc8e6d7d458d3093131fd162b472bf","v":1,"window":null}','charge','stays',NULL,'7049bece2f8948739626e2d086ccf8a8','2a774f52eaa53069cfe90f1ab429d979a934ac8027c7acae842316730bf30bba',4);
INSERT INTO "takifugu_events" VALUES(5,'5d2672b3b41c9ab3bd42022ed7cc8547e89d2e4d9b07bb1c3473e972df0afc24','{"analyst":null,"answer":{"drawn":[11]},"at":"2026-11-16T00:14:27.474574+00:00","charge":4,"dataset":"stays","kind":"answer","seq":5,"totals":"c545d00f2fe1dfa333755287e33d57af6bf51d11146e7c972c88b82976769cbe","v":1}','answer','stays',NULL,NULL,NULL,4);
INSERT INTO "takifugu_events" VALUES(6,'99a8c7f726ef54b85f6585104c6e10bffa18caa8628223bf8b9d307794bf1cc8','{"analyst":null,"at":"2026-11-16T00:14:28.099535+00:00","attempt":"ab6fa3b7d1ba4fdaae8de1ea32265a74","cells":"dbf4b91d190244004e734b9dc1cab7f40e3ce0303a0d8f6ea79fecb1059d7317","data":"b3113aec:541abce03d41eeaa9420d62c9709ddb62fac1bf59fe6314859d07a5756a7d808","dataset":"stays","declared":"cf78e9cd796b478e1278f6ce35a18170b242a50f149613274756b406e2cd3167","groups":null,"key":"42f821e213d54b0db97268eecdc3cf7c","kind":"charge","loss":{"currency":"pure","epsilon":"5657588490743511/18014398509481984"},"mechanism":{"error":{"deviation":4.48456213224351,"interval":9.0},"kind":"integer-laplace","loss":{"currency":"pure","epsilon":"5657588490743511/18014398509481984","epsilon_near":0.31405925031388676},"query":"count","scale":3.184112548828125,"sensitivity":{"l1":1,"linf":1}},"prior":"a787ac1e88da3f9321c8ac491eb55a442a41e83ccdc61576f9bc0dd7ba60fb97","query":{"by":["zone"],"column":"state","name":"count","values":["clinic","ward"]},"query_fingerprint":"d9afcafda5ea7850ae1b7b4047552964c73f583106bd34aad2747c4533be49d6","question":"4f4c6292500696b49eee06a0528ecd652b89ef0033d2dbb673b68470e261727f","secrets":"a1dca114e857eb11000e62c4a310c2e922f1fafde61d53243fdb0f538ed90642","seq":6,"totals":"c0a7b2256ca72b0cadf37419f23eca0432ec2c78c645f77668eb0acda4bbdc93","translation":"82fa480429c539c5ffca405547aff674c5fc8e6d7d458d3093131fd162b472bf","v":1,"window":null}','charge','stays',NULL,'42f821e213d54b0db97268eecdc3cf7c','4f4c6292500696b49eee06a0528ecd652b89ef0033d2dbb673b68470e261727f',6);
INSERT INTO "takifugu_events" VALUES(7,'60776c7b281680dab3cf21e8c367216034aec1294e4403c66e2128ae3c8a8c3b','{"analyst":null,"answer":{"drawn":[11,12]},"at":"2026-11-16T00:14:28.171104+00:00","charge":6,"dataset":"stays","kind":"answer","seq":7,"totals":"c0a7b2256ca72b0cadf37419f23eca0432ec2c78c645f77668eb0acda4bbdc93","v":1}','answer','stays',NULL,NULL,NULL,6);
INSERT INTO "takifugu_events" VALUES(8,'06a9d4650293338ba81406bf1fc0b873ef9c321566860e4f20acd27873445ea2','{"analyst":null,"at":"2026-11-16T00:14:28.871759+00:00","attempt":"0a0ddd60898541ea9b80592c14e4a9b7","cells":"dbf4b91d190244004e734b9dc1cab7f40e3ce0303a0d8f6ea79fecb1059d7317","data":"b3113aec:541abce03d41eeaa9420d62c9709ddb62fac1bf59fe6314859d07a5756a7d808","dataset":"stays","declared":"cf78e9cd796b478e1278f6ce35a18170b242a50f149613274756b406e2cd3167","groups":null,"key":"5d3551a106924f7f9e10cfc78ec15458","kind":"charge","loss":{"currency":"pure","epsilon":"6096790818646877/18014398509481984"},"mechanism":{"error":{"deviation":8.34728830448407,"interval":18.0},"kind":"integer-laplace","loss":{"currency":"pure","epsilon":"6096790818646877/18014398509481984","epsilon_near":0.338439877159251},"query":"histogram","scale":5.909469110990462,"sensitivity":{"l1":2,"linf":1}},"prior":"a787ac1e88da3f9321c8ac491eb55a442a41e83ccdc61576f9bc0dd7ba60fb97","query":{"by":[],"column":"state","name":"histogram"},"query_fingerprint":"f3ca054497b93a247a4fb6d9782c7facba16da04202af5cbb8a6287674853dec","question":"cb515bd52a71727a10d304995bd786739a2544cfa93b7c18416247244dd3c524","secrets":"a1dca114e857eb11000e62c4a310c2e922f1fafde61d53243fdb0f538ed90642","seq":8,"totals":"7cecda088c1b05aaa5502dc610ec7372a47f348c04574e85b89f5d739b9482c5","translation":"82fa480429c539c5ffca405547aff674c5fc8e6d7d458d3093131fd162b472bf","v":1,"window":null}','charge','stays',NULL,'5d3551a106924f7f9e10cfc78ec15458','cb515bd52a71727a10d304995bd786739a2544cfa93b7c18416247244dd3c524',8);
INSERT INTO "takifugu_events" VALUES(9,'18db89c4021f6e94cb1bd0e100e8ab0e22d4a34b251c45dcebb6ed01102f295e','{"analyst":null,"answer":{"drawn":[8,9,11]},"at":"2026-11-16T00:14:28.926038+00:00","charge":8,"dataset":"stays","kind":"answer","seq":9,"totals":"7cecda088c1b05aaa5502dc610ec7372a47f348c04574e85b89f5d739b9482c5","v":1}','answer','stays',NULL,NULL,NULL,8);
CREATE TABLE takifugu_head (
	id INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	at VARCHAR(40) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "takifugu_head" VALUES(1,9,'18db89c4021f6e94cb1bd0e100e8ab0e22d4a34b251c45dcebb6ed01102f295e','2026-11-16T00:14:28.926038+00:00');
CREATE TABLE takifugu_migrations (
	place INTEGER NOT NULL, 
	name VARCHAR(100) NOT NULL, 
	PRIMARY KEY (place), 
	UNIQUE (name)
);
INSERT INTO "takifugu_migrations" VALUES(1,'0001 events in a chain');
INSERT INTO "takifugu_migrations" VALUES(2,'0002 totals by cell');
INSERT INTO "takifugu_migrations" VALUES(3,'0003 digests of totals');
INSERT INTO "takifugu_migrations" VALUES(4,'0004 what names a cell');
INSERT INTO "takifugu_migrations" VALUES(5,'0005 events by dataset');
CREATE TABLE takifugu_segments (
	account INTEGER NOT NULL, 
	start BIGINT NOT NULL, 
	"end" BIGINT NOT NULL, 
	base TEXT NOT NULL, 
	peak TEXT NOT NULL, 
	cells VARCHAR(64) NOT NULL, 
	PRIMARY KEY (account, start)
)
 WITHOUT ROWID

;
INSERT INTO "takifugu_segments" VALUES(1,-9223372036854775808,9223372036854775807,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
CREATE INDEX takifugu_events_of ON takifugu_events (dataset, kind, seq);
CREATE INDEX takifugu_sources ON takifugu_events (seq) WHERE kind = 'source';
CREATE UNIQUE INDEX takifugu_one_answer_per_charge ON takifugu_events (charge) WHERE kind = 'answer';
CREATE INDEX takifugu_of_dataset ON takifugu_events (dataset, seq);
CREATE UNIQUE INDEX takifugu_one_event_per_key ON takifugu_events ("key") WHERE "key" IS NOT NULL;
CREATE INDEX takifugu_questions ON takifugu_events (question) WHERE question IS NOT NULL;
CREATE UNIQUE INDEX takifugu_account_names ON takifugu_accounts (dataset, analyst);
COMMIT;
