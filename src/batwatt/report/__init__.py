"""Tables, figures and one page about a campaign, of its table and the files of its kept runs."""
