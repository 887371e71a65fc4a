"""Lists the placeholders of a Word template, one a line."""

import argparse

import common


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("template")
    document = common.open_document(parser.parse_args().template)
    found = {}
    for container in common.containers(document):
        for table in common.tables(container):
            for row in table.rows:
                for name in common.row_names(row):
                    if "." in name:
                        found.setdefault(name, f"{name} (table)")
        for paragraph in common.paragraphs(container):
            for name in common.names(paragraph):
                found.setdefault(name, name)
    print("\n".join(found.values()) if found else "no placeholders")


if __name__ == "__main__":
    main()
