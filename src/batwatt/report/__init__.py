"""Tables, figures and one page about a campaign, made from its table and the files of its kept runs."""
