"""Tables, figures and one page about a study, of its table and the files of its kept runs."""
