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
INSERT INTO "takifugu_accounts" VALUES(1,'ward','','2','0','step','["country"]','1/32 0 0','13/32 0 0',NULL);
INSERT INTO "takifugu_accounts" VALUES(2,'ward','ana','1','0',NULL,NULL,'0 0 0','1/4 0 0',NULL);
INSERT INTO "takifugu_accounts" VALUES(3,'ward','bob','9','0',NULL,NULL,'1/32 0 0','13/32 0 0',NULL);
INSERT INTO "takifugu_accounts" VALUES(4,'clinic','','3','1/1000000','step',NULL,'0 0 0','0 0 1/100;1/2 1/10000000 0',NULL);
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
INSERT INTO "takifugu_cells" VALUES(1,2,'["fr"]','1/4 0 0');
INSERT INTO "takifugu_cells" VALUES(2,0,'["fr"]','1/4 0 0');
INSERT INTO "takifugu_cells" VALUES(3,0,'["fr"]','1/4 0 0');
INSERT INTO "takifugu_cells" VALUES(3,2,'["fr"]','1/4 0 0');
CREATE TABLE takifugu_digests (
	account INTEGER NOT NULL, 
	start BIGINT NOT NULL, 
	path VARCHAR(32) NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (account, start, path)
)
 WITHOUT ROWID

;
INSERT INTO "takifugu_digests" VALUES(0,0,'',X'49000000000000000000000000000000000000000000000000000000000000000033CDB5B9C50D94D1D483584E50DCDB2A8D04E6AF0B416E6A0518AE05B08A08EC0000000000000000000000000000000000000000000000000000000000000000F8E70E7C89B05F438496319243645EFA0ED1067A13140F748369F1B39A0306080C9DD1725148833885FA35C044B6353367CC85ABA4133F6AAE6BE45B86192ED40000000000000000000000000000000000000000000000000000000000000000B7FDD7A1D3A0BD222F2B0A3DDC18038922EFE7390244D74D34510A10F1291067EAB4E787B28607FEE588B882ECC8B76DEA48A1765BAA183F1FF7A3245DE49D6BB998AE7B6023E48BAD12C66B1B3D552208D00CFD428AC6789171AD39FDA0492800000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000B013EE1A315F514063F9EDF01D83F4AFF96363C3A905A02AE982EC279ABA6891C53E54FBE4390D858B66FA578B5AB33432F845EB54F6D16E122C90FF67054EED0000000000000000000000000000000000000000000000000000000000000000021C1834D6CA967DEAB334689286819411A3AFD5DF76DA0C20BC7C7AA5EE47DA45896EDA76F0144BCEF4B992EE0ED6CB622F9246DB63387B3B43A5788B9E1595');
INSERT INTO "takifugu_digests" VALUES(0,0,'1',X'4C13BD8AB5B47EC93CB8E0A15919B2E17CE7A53A35E3D605FBF2786D5D4D546EC8DFE9B59AF9BEE9681CF2084F677324901A6D65EDF3E011C0FFCA6F8D4AA14DD3A45689233FB3BF604076E24B22E54BBAAEF1CC2D834CD37B86963E2581779A721E37586DE957D791AA68451BA4CF345C4DDE89E42B8C652A847171AAD25B981BC62D7C63945F918B3907E3377357AD33');
INSERT INTO "takifugu_digests" VALUES(0,0,'3',X'4C36D878EF6469920812E3C09EB9BE6BF256D06B290676371E9FDFCA7E8915F9E6E2A35CB068959B15CEF1B59C3E817A6B38B4C2D2191515CB264B8F18E374CF484DDE89E42B8C652A847171AAD25B981BC62D7C63945F918B3907E3377357AD333A7AD0B5F0508E7DA8F3200C01EC3F70207096C9E1F504FCB24DEB5D128A60B4187DA6851CB3EF9DC1AC7824B90F4400');
INSERT INTO "takifugu_digests" VALUES(0,0,'4',X'4C4B76C63B6C0629A059DA6E63A906EF69E1B7241AE674EB8D4E04E195EB28F7BF207D472396B2B8A34A669A2B2F0DA7EC4D54B8D682A646B7E0710C712E43C08EB38D49158F5620937B03BC159111641332055A7D95A78524DD69B45F71FF6F794EBD66633AC77F6F4870018A05CCF2149923C57F99F37E374BB3DC75E4906B1182F158C41E8AA729E4B4373470C78BDF');
INSERT INTO "takifugu_digests" VALUES(0,0,'6',X'4C64E59170F5378BE749D491A44695F62E2AC6554AA63568BAA7FCBAA5A4D3144C8456D93C24C8DF31755E306B94BFCA85');
INSERT INTO "takifugu_digests" VALUES(0,0,'7',X'4C70C04EBD786185B5ECE201F42BA21D6C4DDE89E42B8C652A847171AAD25B981BC62D7C63945F918B3907E3377357AD3373935A3CB854E296C160377D75D06E329570C688EE7F388D52A5B3428E71FE9A4EFF87321DADB23A3CFA16945B3AA1917CBACDD34C3B7DF4A4AFA9A30A58763CDC66DA8BF999A2D7D517F83F6F0DA6A6004011B9953CD756B4D1BD19D1625D4F');
INSERT INTO "takifugu_digests" VALUES(0,0,'8',X'4C8E2DB4BD2B15EC5A648BA857172CAA7155081C495BBEAC729EC0B98252FCAA462F8BE6A07376B04CCE14686DE08CE5A18EE938B7AEB077A71C85FD524F51B5812AC6554AA63568BAA7FCBAA5A4D3144C8456D93C24C8DF31755E306B94BFCA858F880C5C5BA68C8CE388D2E18B12420F4F2573DF828A36564F148D37935D1110D49240F9A76E4291985F6269958F761E');
INSERT INTO "takifugu_digests" VALUES(0,0,'b',X'4CB63357DC237F1E2308E903E857D24D4E56D06B290676371E9FDFCA7E8915F9E6E2A35CB068959B15CEF1B59C3E817A6B');
INSERT INTO "takifugu_digests" VALUES(0,0,'c',X'4CC9C131B24AEF09616E737288CC98D0DFDC66DA8BF999A2D7D517F83F6F0DA6A6004011B9953CD756B4D1BD19D1625D4F');
INSERT INTO "takifugu_digests" VALUES(0,0,'e',X'4CE506746D19DB05B8F77E09B2FDCF9619207096C9E1F504FCB24DEB5D128A60B4187DA6851CB3EF9DC1AC7824B90F4400');
INSERT INTO "takifugu_digests" VALUES(0,0,'f',X'4CF005C23AC85089977CDCE0A005DE2BF3207096C9E1F504FCB24DEB5D128A60B4187DA6851CB3EF9DC1AC7824B90F4400F9D04DE66288EC83AACE7BD2844A80C5207096C9E1F504FCB24DEB5D128A60B4187DA6851CB3EF9DC1AC7824B90F4400');
INSERT INTO "takifugu_digests" VALUES(1,0,'',X'4C2BFB1F1E45C8B8605B19B31AFF433B808370D254F35E9928F4611A60BF07C8952D6AE777047616542E572473982235DD');
INSERT INTO "takifugu_digests" VALUES(1,2,'',X'4C2BFB1F1E45C8B8605B19B31AFF433B808370D254F35E9928F4611A60BF07C8952D6AE777047616542E572473982235DD');
INSERT INTO "takifugu_digests" VALUES(2,0,'',X'4C2BFB1F1E45C8B8605B19B31AFF433B808370D254F35E9928F4611A60BF07C8952D6AE777047616542E572473982235DD');
INSERT INTO "takifugu_digests" VALUES(3,0,'',X'4C2BFB1F1E45C8B8605B19B31AFF433B808370D254F35E9928F4611A60BF07C8952D6AE777047616542E572473982235DD');
INSERT INTO "takifugu_digests" VALUES(3,2,'',X'4C2BFB1F1E45C8B8605B19B31AFF433B808370D254F35E9928F4611A60BF07C8952D6AE777047616542E572473982235DD');
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
INSERT INTO "takifugu_events" VALUES(1,'a2e99a73a0fa3b065a868d8627e8508594c5381c007461791d964bab692a6666','{"at":"2026-03-01T00:00:00+00:00","kind":"created","ledger":"3877c7bb75004db1bc4432356ae73098","seq":1,"totals":"72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa","v":1,"witness":"off"}','created',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(2,'45c989741238502266316f84868549ede8f975e22c631d9d181654f2f75c4199','{"actor":"owner","analyst":null,"at":"2026-03-01T01:00:00+00:00","dataset":"ward","delta":"0/1","epsilon":"2/1","kind":"budget","seq":2,"totals":"6f8ef55a5e46c4be9c687bccce61a31733570fd2841a46550e8b3871544295a4","v":1,"witness":"off"}','budget','ward',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(3,'507c2a05b7973794c7cda559e615d6f3791f5837529a105f59bbada65edae1df','{"actor":"owner","analyst":"ana","at":"2026-03-01T02:00:00+00:00","dataset":"ward","delta":"0/1","epsilon":"1/1","kind":"budget","seq":3,"totals":"a5ddee51bafad4dfe8d00f6d835f26d6c85dd5e14ccded7f7102f88ea46af52c","v":1,"witness":"off"}','budget','ward','ana',NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(4,'e59bb94bfc2ac544355ed05181342ff65eadca914959dac0906c8ad2d74e147f','{"actor":"owner","analyst":"bob","at":"2026-03-01T03:00:00+00:00","dataset":"ward","delta":"0/1","epsilon":"9/1","kind":"budget","seq":4,"totals":"075d6e49c90a8eac8999c1857949b01e150daf32b4958c60446217dcdb5292df","v":1,"witness":"off"}','budget','ward','bob',NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(5,'c6e0a40811849d1916f78ecd529c9cc25d72c5b0f725e0b65c0b006555d01727','{"actor":"owner","analyst":null,"at":"2026-03-01T04:00:00+00:00","dataset":"clinic","delta":"1/1000000","epsilon":"3/1","kind":"budget","seq":5,"totals":"ad2bd3ee86d5693e665ac0926757fced6f43bd311624be9e9ebaa96b6552398b","v":1,"witness":"off"}','budget','clinic',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(6,'bc9c3b40eed048fb82bd72ed39196377bb11c5566a48d8471dc246da0b08a8e1','{"analyst":"ana","at":"2026-03-01T06:00:00+00:00","attempt":"5f4b813b07994134849af4b748569873","cells":"25735082f081a376578bc45edb2d61b81cd1758f2e77d2d00f361f734684a5b0","data":"data","dataset":"ward","declared":"","groups":{"columns":["country"],"keys":[["fr"]]},"key":"k1","kind":"charge","loss":{"currency":"pure","epsilon":"1/4"},"mechanism":{"kind":"laplace"},"naming":{"entity":"person","source":{"kind":"csv","path":"ward.csv"}},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"9306da34cbb9800a0cf253796b41447b75963ea25bd0701a92dd18e157530ef0","secrets":"secrets","seq":6,"totals":"df8913a24121bcbdd6804405e2cc16cb3cbbffb412020c4c0fad4a46d254bacd","translation":"doubling","v":1,"window":{"end":5,"start":0,"unit":"step"},"witness":"off"}','charge','ward','ana','k1','9306da34cbb9800a0cf253796b41447b75963ea25bd0701a92dd18e157530ef0',6);
INSERT INTO "takifugu_events" VALUES(7,'6261a273d99187d18ecf0f0efc3c43940b6bd82142de3d0c558dc6b0becb6b78','{"analyst":"ana","answer":{"count":7},"at":"2026-03-01T07:00:00+00:00","charge":6,"dataset":"ward","kind":"answer","seq":7,"totals":"df8913a24121bcbdd6804405e2cc16cb3cbbffb412020c4c0fad4a46d254bacd","v":1,"witness":"off"}','answer','ward','ana',NULL,NULL,6);
INSERT INTO "takifugu_events" VALUES(8,'eda4d061008afdb61d5bbce771252318bc326480e452b1292c06a3318976d445','{"analyst":"bob","at":"2026-03-01T09:00:00+00:00","attempt":"50c36aec2415431581278d031a8f97ac","cells":"25735082f081a376578bc45edb2d61b81cd1758f2e77d2d00f361f734684a5b0","data":"data","dataset":"ward","declared":"","groups":null,"key":"k2","kind":"charge","loss":{"currency":"pure","epsilon":"1/8"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"5d20e94b00e2350d381e69e43b5df1cc2de4090ae5666afa4bf4d87d7715ed8b","secrets":"secrets","seq":8,"totals":"1d651a21b80280bfeb408903597dceb92acc6cea7d510085e89296b78d188b06","translation":"doubling","v":1,"window":{"end":9,"start":2,"unit":"step"},"witness":"off"}','charge','ward','bob','k2','5d20e94b00e2350d381e69e43b5df1cc2de4090ae5666afa4bf4d87d7715ed8b',8);
INSERT INTO "takifugu_events" VALUES(9,'06edeec621cb94bbd9046d38e8a2bf9aabed03cd4851bd870db579cb33d06165','{"analyst":"bob","at":"2026-03-01T10:00:00+00:00","attempt":"dec883954d3b4e11b1bc3b5c9dfde8f2","cells":"25735082f081a376578bc45edb2d61b81cd1758f2e77d2d00f361f734684a5b0","data":"data","dataset":"ward","declared":"","groups":null,"key":"k3","kind":"charge","loss":{"currency":"pure","epsilon":"1/32"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"abaf3f95c984c8923cfc5074f50fda12c348202f8fec95e92e98f2f96609dce2","secrets":"secrets","seq":9,"totals":"ce8c2508420ab2f57e40bd1147aebaf7052d72031c5381f2cc0c08d8474f6c42","translation":"doubling","v":1,"window":null,"witness":"off"}','charge','ward','bob','k3','abaf3f95c984c8923cfc5074f50fda12c348202f8fec95e92e98f2f96609dce2',9);
INSERT INTO "takifugu_events" VALUES(10,'f3120e6beaa486b5456dfd451947a149c297e21024de1043b7dbc9a52a1bc14b','{"analyst":"bob","at":"2026-03-01T11:00:00+00:00","cells":"25735082f081a376578bc45edb2d61b81cd1758f2e77d2d00f361f734684a5b0","charge":6,"data":"data","dataset":"ward","declared":"","groups":{"columns":["country"],"keys":[["fr"]]},"key":"k4","kind":"reuse","loss":{"currency":"pure","epsilon":"1/4"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"9306da34cbb9800a0cf253796b41447b75963ea25bd0701a92dd18e157530ef0","secrets":"secrets","seq":10,"totals":"40bfc4827230b4e6b0fae15a630282232fb9017ac0de836bf22bc19905488506","translation":"doubling","v":1,"window":{"end":5,"start":0,"unit":"step"},"witness":"off"}','reuse','ward','bob','k4','9306da34cbb9800a0cf253796b41447b75963ea25bd0701a92dd18e157530ef0',6);
INSERT INTO "takifugu_events" VALUES(11,'351d4aa53f2d9cfe0c17520f943aadd8f6b6720607070e85c54bedb6ddd2dc8d','{"analyst":null,"at":"2026-03-01T13:00:00+00:00","attempt":"3b4ab56e3a25455fb3142078858c472b","cells":"25735082f081a376578bc45edb2d61b81cd1758f2e77d2d00f361f734684a5b0","data":"data","dataset":"clinic","declared":"","groups":null,"key":"k5","kind":"charge","loss":{"currency":"approximate","delta":"1/10000000","epsilon":"1/2"},"mechanism":{"kind":"laplace"},"naming":{"entity":"person","source":{"kind":"csv","path":"ward.csv"}},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"1093443a583c0190d00ef567c40cfc5cfd3fc7c28a17f259aa0de12882740443","secrets":"secrets","seq":11,"totals":"73aec5e92a8871ff5e62be19deeba583bb1a7db2538e36f84ac215b25162566c","translation":"rich","v":1,"window":{"end":6,"start":5,"unit":"step"},"witness":"off"}','charge','clinic',NULL,'k5','1093443a583c0190d00ef567c40cfc5cfd3fc7c28a17f259aa0de12882740443',11);
INSERT INTO "takifugu_events" VALUES(12,'3bab972df70388766cbd81489f79c101f46dd7abc1f2e92bc288c4bba8d50c4c','{"analyst":null,"at":"2026-03-01T14:00:00+00:00","attempt":"818716d910ce4aa7aa88967e64de08e2","cells":"25735082f081a376578bc45edb2d61b81cd1758f2e77d2d00f361f734684a5b0","data":"data","dataset":"clinic","declared":"","groups":null,"key":"k6","kind":"charge","loss":{"currency":"concentrated","rho":"1/100"},"mechanism":{"kind":"laplace"},"prior":"prior","query":{"name":"stays"},"query_fingerprint":"83fa346b2b20ab2cc81c570ba4f48cf5409267c40da2cf96128a97f18dcb0210","question":"53d6f9a062baf557cfec65e2b1f85e1fccc5a07b77b38ff491b44b1cad08b104","secrets":"secrets","seq":12,"totals":"52c2d3b4c77cbade22922492027721057b208e7f7241a6b51a0900f603203183","translation":"rich","v":1,"window":{"end":9,"start":6,"unit":"step"},"witness":"off"}','charge','clinic',NULL,'k6','53d6f9a062baf557cfec65e2b1f85e1fccc5a07b77b38ff491b44b1cad08b104',12);
CREATE TABLE takifugu_head (
	id INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	at VARCHAR(40) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "takifugu_head" VALUES(1,12,'3bab972df70388766cbd81489f79c101f46dd7abc1f2e92bc288c4bba8d50c4c','2026-03-01T14:00:00+00:00');
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
INSERT INTO "takifugu_segments" VALUES(1,-9223372036854775808,0,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(1,0,2,'0 0 0','1/4 0 0','dcfea6258f41c42ca0ed4c99ae122e0d9b304a67aea3b2c749eca202f3fd0e6f');
INSERT INTO "takifugu_segments" VALUES(1,2,5,'1/8 0 0','1/4 0 0','dcfea6258f41c42ca0ed4c99ae122e0d9b304a67aea3b2c749eca202f3fd0e6f');
INSERT INTO "takifugu_segments" VALUES(1,5,9,'1/8 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(1,9,9223372036854775807,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(2,-9223372036854775808,0,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(2,0,5,'0 0 0','1/4 0 0','dcfea6258f41c42ca0ed4c99ae122e0d9b304a67aea3b2c749eca202f3fd0e6f');
INSERT INTO "takifugu_segments" VALUES(2,5,9223372036854775807,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(3,-9223372036854775808,0,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(3,0,2,'0 0 0','1/4 0 0','dcfea6258f41c42ca0ed4c99ae122e0d9b304a67aea3b2c749eca202f3fd0e6f');
INSERT INTO "takifugu_segments" VALUES(3,2,5,'1/8 0 0','1/4 0 0','dcfea6258f41c42ca0ed4c99ae122e0d9b304a67aea3b2c749eca202f3fd0e6f');
INSERT INTO "takifugu_segments" VALUES(3,5,9,'1/8 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(3,9,9223372036854775807,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(4,-9223372036854775808,5,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(4,5,6,'1/2 1/10000000 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(4,6,9,'0 0 1/100','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(4,9,9223372036854775807,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
CREATE INDEX takifugu_of_dataset ON takifugu_events (dataset, seq);
CREATE INDEX takifugu_questions ON takifugu_events (question) WHERE question IS NOT NULL;
CREATE INDEX takifugu_sources ON takifugu_events (seq) WHERE kind = 'source';
CREATE INDEX takifugu_events_of ON takifugu_events (dataset, kind, seq);
CREATE UNIQUE INDEX takifugu_one_event_per_key ON takifugu_events ("key") WHERE "key" IS NOT NULL;
CREATE UNIQUE INDEX takifugu_one_answer_per_charge ON takifugu_events (charge) WHERE kind = 'answer';
CREATE UNIQUE INDEX takifugu_account_names ON takifugu_accounts (dataset, analyst);
COMMIT;
