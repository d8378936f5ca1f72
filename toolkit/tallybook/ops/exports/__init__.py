"""exports: any cloud export as rows of text, then typed by rule.

profile   how one kind of export is read                 profile
rows      every cell as text                             jsons
ledger    what is no row, with its place and reason      ledger
"""
