"""exports: any cloud export, exactly.

    parts       the files at a path, a pattern, a folder or a place in a bucket     parts
    whole       manifests, numbers of parts, checksums                      manifests, layouts
    unpack      gzip, Zstandard, zip, bounded                               unpacking
    decode      any encoding to UTF-8                                       texts
    dialect     delimiter, header, titles                                   dialects
    rows        every cell as text, with its file, line and byte            delimited, rowwise,
                                                                            jsons, copied, tables
    types       by rule, in the same pass                                   target, sql/cells.sql

Nothing is guessed of a value: ids keep their zeros, ``NA`` stays ``NA``, numbers stay as they are
written, until a rule gives their column a type; a cell that does not fit its type is set apart with
its text. Rows in = rows + bad rows, always. A file says by its first bytes what it is.

A native layout (DynamoDB, S3 Inventory, …) is one small file in ``layouts``; a profile pins how one
export is read.
"""
