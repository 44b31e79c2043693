BEGIN TRANSACTION;
CREATE TABLE takifugu_accounts (
        id INTEGER NOT NULL,
        dataset TEXT NOT NULL,
        analyst TEXT NOT NULL,
        epsilon TEXT,
        delta TEXT,
        unit TEXT,
        "partition" TEXT,
        always TEXT NOT NULL,
        worst TEXT NOT NULL,
        lost TEXT,
        PRIMARY KEY (id)
);
INSERT INTO "takifugu_accounts" VALUES(1,'ward','','8','0',NULL,NULL,'0 0 0 [["1/4",["member",["home"]]],["1/4",["member",["ward"]]],["1/4",["member",["work"]]]]','0 0 0 [["1/4",["member",["home"]]],["1/4",["member",["ward"]]],["1/4",["member",["work"]]]]',NULL);
INSERT INTO "takifugu_accounts" VALUES(2,'loads','','8','0',NULL,NULL,'0 0 0 [["1/2",["distance","0","4"]]]','0 0 0 [["1/2",["distance","0","4"]]]',NULL);
CREATE TABLE takifugu_cells (
        account INTEGER NOT NULL,
        start BIGINT NOT NULL,
        cell TEXT NOT NULL,
        own TEXT NOT NULL,
        PRIMARY KEY (account, start, cell)
) WITHOUT ROWID;
CREATE TABLE takifugu_digests (
        account INTEGER NOT NULL,
        start BIGINT NOT NULL,
        path VARCHAR(32) NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (account, start, path)
) WITHOUT ROWID;
INSERT INTO "takifugu_digests" VALUES(0,0,'',X'4C1A6D65EDF3E011C0FFCA6F8D4AA14DD3D43EFE832C4603BED6EF1350AB6C45C35A0D8D73AA071900B3D357F14CDA1FAB38B4C2D2191515CB264B8F18E374CF48207096C9E1F504FCB24DEB5D128A60B4187DA6851CB3EF9DC1AC7824B90F440079D2849E960FCF78CCAAAEA3F07AFBB9207096C9E1F504FCB24DEB5D128A60B4187DA6851CB3EF9DC1AC7824B90F440099768FCAF6405EABBC9A6FC3EAC64F45D8DAA8E3193F2BA81B0D339809060417D5C9660EEDD775E14CECB2827ABAC810');
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
INSERT INTO "takifugu_events" VALUES(1,'c7da82aeb551e397276044c9323a5e57611dd9200be5021e4b1d01732e2133d1','{"actor":"root","at":"2026-11-18T12:11:15.411263+00:00","kind":"created","ledger":"05d0eb6555bf498ca823cd1d6a6114f8","seq":1,"totals":"72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa","v":1,"witness":"off"}','created',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(2,'118585d85704c929f6555f77af4b78affe859d0ba22b5486772572160e7070b1','{"actor":"root","analyst":null,"at":"2026-11-18T12:11:15.475991+00:00","dataset":"ward","delta":"0/1","epsilon":"8/1","kind":"budget","seq":2,"totals":"67b912e8962d688ac5ee7878fc504fcc8c18ffff14ce115f9a82bfe71246efd3","v":1,"witness":"off"}','budget','ward',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(3,'ede3d6297a6ddf41771a3a8ca4802cda413a863b295a08fb67ec027595815a3d','{"actor":"root","analyst":null,"at":"2026-11-18T12:11:15.487561+00:00","dataset":"loads","delta":"0/1","epsilon":"8/1","kind":"budget","seq":3,"totals":"262eef891cd827719ecbb086e760231e3b86b77c5943fa36b32fde645681835b","v":1,"witness":"off"}','budget','loads',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(4,'627cfc48582dc7bff18366ff09aa70a849d2eff0a3d20ab545a53ef430de71ac','{"actor":"root","analyst":null,"at":"2026-11-18T12:11:15.492481+00:00","attempt":"b026f872eeab4c0c882d28766ab9419b","cells":"116d8d94dd2d65a1dd0063837f79beb537b73fa4b011435f2ccd7583fe6052c6","data":"d","dataset":"ward","declared":"","groups":null,"key":"5bbe49202f294c58862cac6cc7b97bac","kind":"charge","loss":{"cost":[["1/4",["member",["home"]]]],"currency":"metric"},"mechanism":{"scale":4.0},"naming":{"entity":"person","protected":{"place":{"values":["home","ward","work"]}},"source":{"kind":"csv","path":"ward.csv"}},"prior":"prior","query":{"name":"q"},"query_fingerprint":"48985d46c773eeb0a7c00ee7ff6c06667065af1b923cc5458418905944592727","question":"d493676c7a1cf29eef4a8dd5028465fbae3b8fd40dee6c4279d71645f545e1db","secrets":"secrets","seq":4,"totals":"7f2cbc5fbdbaea96d630146d95f7d1e730532e5f89a421237abf55506a80cdfc","translation":"places","v":1,"window":null,"witness":"off"}','charge','ward',NULL,'5bbe49202f294c58862cac6cc7b97bac','d493676c7a1cf29eef4a8dd5028465fbae3b8fd40dee6c4279d71645f545e1db',4);
INSERT INTO "takifugu_events" VALUES(5,'c4ec1cf9771556c7ffc7f2a98ae2585a04754a107b5119af39d2cc734d98388d','{"actor":"root","analyst":null,"at":"2026-11-18T12:11:15.511955+00:00","attempt":"c091063093584db9b519c71f2841e333","cells":"116d8d94dd2d65a1dd0063837f79beb537b73fa4b011435f2ccd7583fe6052c6","data":"d","dataset":"ward","declared":"","groups":null,"key":"eb16b513412647acb055520407e529ed","kind":"charge","loss":{"cost":[["1/4",["member",["ward"]]]],"currency":"metric"},"mechanism":{"scale":4.0},"prior":"prior","query":{"name":"q"},"query_fingerprint":"48985d46c773eeb0a7c00ee7ff6c06667065af1b923cc5458418905944592727","question":"cf69f608f931315346525906608cc8e4da5d1a62b02534859f671cc258f3ca3f","secrets":"secrets","seq":5,"totals":"f85be7a6c97d6bd329ac028c9dc80e5953a3ac4548477b338516f5f727a2ae37","translation":"places","v":1,"window":null,"witness":"off"}','charge','ward',NULL,'eb16b513412647acb055520407e529ed','cf69f608f931315346525906608cc8e4da5d1a62b02534859f671cc258f3ca3f',5);
INSERT INTO "takifugu_events" VALUES(6,'3be994b156043d805fdc7fc77f7b61a59239d2f27a35b1bfac5ef7cd02b2cf92','{"actor":"root","analyst":null,"at":"2026-11-18T12:11:15.519256+00:00","attempt":"1577a1761e724b5a8e88e32b705fbb5f","cells":"116d8d94dd2d65a1dd0063837f79beb537b73fa4b011435f2ccd7583fe6052c6","data":"d","dataset":"ward","declared":"","groups":null,"key":"e83b50d759924fa28b0802d4b40bb137","kind":"charge","loss":{"cost":[["1/4",["member",["work"]]]],"currency":"metric"},"mechanism":{"scale":4.0},"prior":"prior","query":{"name":"q"},"query_fingerprint":"48985d46c773eeb0a7c00ee7ff6c06667065af1b923cc5458418905944592727","question":"6c7fa832f2348abd0e16588d6471e639e964800c7723bd00a3fb135e7673e998","secrets":"secrets","seq":6,"totals":"82096fb8771cf48f42b619637bf063640b4343269e542bbcb1d1730f2c9d7883","translation":"places","v":1,"window":null,"witness":"off"}','charge','ward',NULL,'e83b50d759924fa28b0802d4b40bb137','6c7fa832f2348abd0e16588d6471e639e964800c7723bd00a3fb135e7673e998',6);
INSERT INTO "takifugu_events" VALUES(7,'20b2feefea462a527b5af0f3aec9b01dd241b58b6a7bec3e84e1a12bbb507759','{"actor":"root","analyst":null,"at":"2026-11-18T12:11:15.531088+00:00","before":"116d8d94dd2d65a1dd0063837f79beb537b73fa4b011435f2ccd7583fe6052c6","cells":"0cf41be0d392f2742918611b57b36885d57cfe976dbd18b489a8ed4aa22c1cc6","dataset":"ward","how":"everywhere","kind":"cells","naming":{"entity":"person","protected":{"place":{"values":["home","other"]}},"source":{"kind":"csv","path":"ward.csv"}},"seq":7,"totals":"82096fb8771cf48f42b619637bf063640b4343269e542bbcb1d1730f2c9d7883","v":1,"witness":"off"}','cells','ward',NULL,NULL,NULL,NULL);
INSERT INTO "takifugu_events" VALUES(8,'a10e46932962bbbc79268f73adad8d4908cc31341cbc68869da0974bc9385d86','{"actor":"root","analyst":null,"at":"2026-11-18T12:11:15.539321+00:00","attempt":"8e127c01cc2944199c4346d120b4f197","cells":"0a6302f42f81b9fdfcb8f9195266e1fe763afe208c69ec15d1c1b14521799c63","data":"d","dataset":"loads","declared":"","groups":null,"key":"f4e2aeabb4c142bdb91fcbf4bbabcdeb","kind":"charge","loss":{"cost":[["1/2",["distance","0","4"]]],"currency":"metric"},"mechanism":{"scale":4.0},"naming":{"entity":"person","protected":{"load":{"missing":"refuse"}},"source":{"kind":"csv","path":"ward.csv"}},"prior":"prior","query":{"name":"q"},"query_fingerprint":"48985d46c773eeb0a7c00ee7ff6c06667065af1b923cc5458418905944592727","question":"830d26853a634c3b77f76e081c22d93129324223efad473db503ac6c6ba3eaa0","secrets":"secrets","seq":8,"totals":"5bd136d791bd3251793cc2e8fcc43e19e9beadc5bf85b5c9098aa1e97ee79700","translation":"places","v":1,"window":null,"witness":"off"}','charge','loads',NULL,'f4e2aeabb4c142bdb91fcbf4bbabcdeb','830d26853a634c3b77f76e081c22d93129324223efad473db503ac6c6ba3eaa0',8);
CREATE TABLE takifugu_head (
        id INTEGER NOT NULL,
        seq BIGINT NOT NULL,
        hash VARCHAR(64) NOT NULL,
        at VARCHAR(40) NOT NULL,
        PRIMARY KEY (id)
);
INSERT INTO "takifugu_head" VALUES(1,8,'a10e46932962bbbc79268f73adad8d4908cc31341cbc68869da0974bc9385d86','2026-11-18T12:11:15.539321+00:00');
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
INSERT INTO "takifugu_migrations" VALUES(6,'0006 costs by value');
INSERT INTO "takifugu_migrations" VALUES(7,'0007 people who ask and approve');
CREATE TABLE takifugu_segments (
        account INTEGER NOT NULL,
        start BIGINT NOT NULL,
        "end" BIGINT NOT NULL,
        base TEXT NOT NULL,
        peak TEXT NOT NULL,
        cells VARCHAR(64) NOT NULL,
        PRIMARY KEY (account, start)
) WITHOUT ROWID;
INSERT INTO "takifugu_segments" VALUES(1,-9223372036854775808,9223372036854775807,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
INSERT INTO "takifugu_segments" VALUES(2,-9223372036854775808,9223372036854775807,'0 0 0','0 0 0','72dfcfb0c470ac255cde83fb8fe38de8a128188e03ea5ba5b2a93adbea1062fa');
CREATE INDEX takifugu_events_of ON takifugu_events (dataset, kind, seq);
CREATE INDEX takifugu_of_dataset ON takifugu_events (dataset, seq);
CREATE UNIQUE INDEX takifugu_one_answer_per_charge ON takifugu_events (charge) WHERE kind = 'answer';
CREATE UNIQUE INDEX takifugu_one_event_per_key ON takifugu_events ("key") WHERE "key" IS NOT NULL;
CREATE INDEX takifugu_questions ON takifugu_events (question) WHERE question IS NOT NULL;
CREATE INDEX takifugu_sources ON takifugu_events (seq) WHERE kind = 'source';
CREATE INDEX takifugu_of_analyst ON takifugu_events (analyst, seq) WHERE analyst IS NOT NULL;
CREATE UNIQUE INDEX takifugu_abandoned_once ON takifugu_events (charge) WHERE kind = 'abandoned';
CREATE UNIQUE INDEX takifugu_account_names ON takifugu_accounts (dataset, analyst);
COMMIT;
