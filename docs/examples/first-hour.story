# The first hour: an empty folder, and the package installed with its extra `iceberg`.

backfill init shop

cd shop

backfill setup

backfill run

backfill status

# From now on the orders of a day are counted, too.

sed -i 's/SUM(amount) AS amount/SUM(amount) AS amount, COUNT(*) AS orders/' shop/catalog.py
sed -i 's/nullable=False)\]/nullable=False), Column("orders", "bigint")]/' shop/catalog.py

# exit 2
backfill plan

backfill apply PLAN

# exit 2
backfill diff PLAN

backfill promote PLAN --yes

# Any engine reads it by name.

backfill iceberg enable

cat > by_name.py <<'EOF'
from pyiceberg.catalog import load_catalog
lake = load_catalog("backfill", type="sql", uri="sqlite:///data/state.db", init_catalog_tables="false")
shop = lake.load_table("prod.shop.revenue").scan().to_duckdb("revenue")
print(shop.sql("SELECT COUNT(*) AS days, SUM(amount) AS amount, SUM(orders) AS orders FROM revenue"))
EOF
python by_name.py

backfill views --for duckdb --out views.sql

python -c 'import duckdb; db = duckdb.connect(); db.execute(open("views.sql").read()); print(db.sql("SELECT * FROM shop.revenue ORDER BY 1 LIMIT 3"))'

# And back.

backfill rollback PLAN --yes

python - <<'EOF'
from pyiceberg.catalog import load_catalog
lake = load_catalog("backfill", type="sql", uri="sqlite:///data/state.db", init_catalog_tables="false")
print(lake.load_table("prod.shop.revenue").schema().column_names)
EOF
