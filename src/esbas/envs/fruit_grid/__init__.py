"""The fruit collection task of the paper's Section 5.1: maps, environment and pictures."""
