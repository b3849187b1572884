# Three nights of a project whose model is filled each night.
# Its leases are short, so that the third night is: BACKFILL_LEASE_SECONDS=5 instead of 60.

backfill init shop && cd shop && echo BACKFILL_LEASE_SECONDS=5 >> .env

# A day without orders is a day whose orders have not come: models wait for it.

sed -i 's/    Source,/    Source,\n    WhenEmpty,/; s/    times=TimeColumns(event="ordered_on"),/&\n    when_empty=WhenEmpty.WAIT,/' shop/catalog.py
sed -i 's/2024-01-31/2024-01-29/; s/1062/1058/' shop/landing.py && python -m shop.landing

# The first night: the source is late. It ends on the 29th.

# exit 1
backfill run

# exit 1
backfill status --check

backfill why shop.revenue 2024-01-30

# It comes: the 30th, and with it a row without an amount.

cat > land_30th.py <<'EOF'
import sys
from datetime import date
import pyarrow as pa
from deltalake import write_deltalake
amount = int(sys.argv[1]) if len(sys.argv) > 1 else None
row = pa.table({"ordered_on": [date(2024, 1, 30)], "amount": pa.array([amount], pa.int64())})
write_deltalake("data/sources/raw_orders", row, mode="append")
EOF
python land_30th.py

# The second night: the batch fails its audit, and nothing of it is published.

# exit 1
backfill run

# exit 1
backfill status --check

backfill batches --failed

backfill batches BATCH

# The source is mended.

python - <<'EOF'
from deltalake import DeltaTable
DeltaTable("data/sources/raw_orders").delete("amount IS NULL")
EOF
python land_30th.py 2000

# exit 1
backfill run

# The third night: the machine dies in the middle of a run.

sed -i 's/2024, 1, 30/2024, 1, 31/' land_30th.py && python land_30th.py 3000

# exit 137
timeout -s KILL 6 backfill run

backfill status

sleep 5 && backfill run

backfill status --check
