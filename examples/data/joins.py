"""A join of three tables.

Joins purchases with customers and products, and reports the keys that match nothing.
"""

import matplotlib.pyplot as plt
import pandas as pd

customers = pd.read_csv("customers.csv")
products = pd.read_csv("products.csv")
purchases = pd.read_csv("purchases.csv")

# Keys that people have typed: spaces, lower case, nothing at all.
before = purchases["customer_id"].isin(customers["customer_id"]).sum()
purchases["customer_id"] = purchases["customer_id"].str.strip().str.upper()
after = purchases["customer_id"].isin(customers["customer_id"]).sum()
print(f"{len(purchases)} purchases; {before} with a known customer, {after} after cleaning")

joined = purchases.merge(
    customers, on="customer_id", how="left", validate="many_to_one", indicator="has_customer"
).merge(products, on="product_id", how="left", validate="many_to_one", indicator="has_product")
no_customer = joined["has_customer"] == "left_only"
no_product = joined["has_product"] == "left_only"
print()
print("Unmatched purchases:")
columns = ["order_id", "customer_id", "product_id", "quantity"]
print(joined.loc[no_customer | no_product, columns].to_string(index=False))

idle = customers.merge(purchases, on="customer_id", how="left", indicator=True)
idle = idle.loc[idle["_merge"] == "left_only", "name"]
print()
print("Customers without a purchase:", ", ".join(idle))
unsold = set(products["product_id"]) - set(purchases["product_id"])
print("Products without a purchase:", ", ".join(sorted(unsold)))

joined["amount"] = joined["quantity"] * joined["price"]
joined["segment"] = joined["segment"].fillna("unknown")
table = joined.pivot_table(
    index="segment", columns="product", values="amount", aggfunc="sum", fill_value=0
)
print()
print(table.round(2))

order = table.sum(axis=1).sort_values().index
ax = table.loc[order].plot.barh(stacked=True, figsize=(7, 3.5), colormap="viridis")
ax.set(title="Amount by segment and product", xlabel="EUR", ylabel="")
ax.legend(title=None)
plt.tight_layout()
plt.show()
