"""The sort of script a model writes: clean a messy table, deduplicate, impute, aggregate, detect outliers, report."""
import csv
import io
import re
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

RAW = """id, Name ,email,signup,plan,amount,country
1, alice SMITH,Alice@Example.COM,2024-01-05,Pro,"$1,200.50",us
2,Bob  Jones,bob@example.com,05/02/2024,free,0,USA
3,,carol@example,2024-02-30,PRO,abc,uk
4,Dave O'Neil,dave@example.org,Mar 3 2024,Team,EUR 99,U.K.
2,Bob Jones,BOB@example.com,05/02/2024,Free,,USA
5,Éva Nagy,eva@example.hu,2024/04/01,pro,"1.300,75 €",Hungary
6,frank,frank@example.net,,team,15000,DE
7,Grace Hopper,grace@navy.mil,1 Apr 2024,pro,1100,United States
8,heidi k,heidi@example.de,2024-05-11,pro,900.00,de
9,Ivan,ivan@@bad,2024-05-12,gold,-50,RU
"""
COUNTRIES = {"us": "US", "usa": "US", "united states": "US", "uk": "GB", "u.k.": "GB", "hungary": "HU", "de": "DE", "ru": "RU"}
FORMATS = ("%Y-%m-%d", "%d/%m/%Y", "%b %d %Y", "%Y/%m/%d", "%d %b %Y")
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}")


@dataclass
class Customer:
    id: int
    name: str | None
    email: str | None
    signup: date | None
    plan: str
    amount: Decimal | None
    country: str
    issues: list[str] = field(default_factory=list)

    @property
    def complete(self):
        return None not in (self.name, self.email, self.signup, self.amount)


def clean_name(text):
    words = text.split()
    return " ".join(re.sub(r"(^|['-])(\w)", lambda m: m[1] + m[2].upper(), w.lower()) for w in words) or None


def clean_date(text):
    for form in FORMATS:
        try:
            return datetime.strptime(text.strip(), form).date()
        except ValueError:
            continue
    return None


def clean_amount(text):
    digits = re.sub(r"[^\d.,-]", "", text)
    if re.search(r",\d{2}$", digits):
        digits = digits.replace(".", "").replace(",", ".")
    try:
        value = Decimal(digits.replace(",", ""))
    except InvalidOperation:
        return None
    return value if value >= 0 else None


def clean(row):
    row = {key.strip().lower(): (value or "").strip() for key, value in row.items()}
    email = row["email"].lower()
    customer = Customer(
        int(row["id"]), clean_name(row["name"]), email if EMAIL.fullmatch(email) else None, clean_date(row["signup"]),
        row["plan"].lower(), clean_amount(row["amount"]), COUNTRIES.get(row["country"].lower(), "??"),
    )
    customer.issues = [f"bad {name}: {row[name]!r}" for name in ("name", "email", "signup", "amount") if getattr(customer, name) is None]
    if customer.plan not in {"free", "pro", "team"}:
        customer.issues.append(f"unknown plan: {customer.plan!r}")
    return customer


def deduplicate(customers):
    """Keeps the most complete record of each id, filling its gaps from the others."""
    groups = defaultdict(list)
    for customer in customers:
        groups[customer.id].append(customer)
    for same in groups.values():
        best, *others = sorted(same, key=lambda c: len(c.issues))
        for other in others:
            for name in ("name", "email", "signup", "amount"):
                if getattr(best, name) is None:
                    setattr(best, name, getattr(other, name))
        yield best


customers = [clean(row) for row in csv.DictReader(io.StringIO(RAW))]
for c in customers:
    print(f"{c.id:>2} {c.name or '-':<13} {c.email or '-':<18} {c.signup or '-'!s:<10} {c.plan:<5} {c.amount if c.amount is not None else '-':>8} {c.country} {'; '.join(c.issues)}")
unique = list(deduplicate(customers))
print(f"\n{len(customers)} rows, {len(unique)} unique, {sum(c.complete and not c.issues for c in unique)} clean")
print("issues:", Counter(issue.split(":")[0] for c in customers for issue in c.issues).most_common())

known = [c.amount for c in unique if c.amount is not None]
median = statistics.median(known)
for c in unique:
    if c.amount is None:
        c.amount = median
q1, _, q3 = statistics.quantiles(sorted(float(a) for a in known), n=4)
fence = q3 + 1.5 * (q3 - q1)
print(f"median {median}, quartiles {q1:.2f} {q3:.2f}, outliers:", [c.name for c in unique if c.amount > fence])

by_plan = defaultdict(list)
for c in unique:
    by_plan[c.plan].append(c.amount)
print(f"\n{'plan':<6}{'n':>3}{'total':>12}{'mean':>11}")
for plan, amounts in sorted(by_plan.items(), key=lambda item: -sum(item[1])):
    print(f"{plan:<6}{len(amounts):>3}{sum(amounts):>12,.2f}{sum(amounts) / len(amounts):>11,.2f}")

months = Counter(c.signup.strftime("%Y-%m") for c in unique if c.signup)
running = 0
for month in sorted(months):
    running += months[month]
    print(month, "#" * months[month], running)
pivot = defaultdict(Counter)
for c in unique:
    pivot[c.country][c.plan] += 1
plans = sorted(by_plan)
print("\n" + "    ".join(["  "] + plans))
for country, counts in sorted(pivot.items()):
    print(country, *(f"{counts[plan]:>6}" for plan in plans))
domains = Counter(c.email.rpartition(".")[2] for c in unique if c.email)
out = io.StringIO()
writer = csv.writer(out, lineterminator="\n")
writer.writerows([("id", "name", "amount")] + [(c.id, c.name, c.amount) for c in unique if c.complete][:4])
print(domains.most_common(2), out.getvalue(), sep="\n", end="")
