"""What runyard can do, for a program that asks: the commands, the page and Python call the same.

Owns every decision between a request and its result: which sweep or trial is meant, what is checked
before anything is made, what is sent, watched and ended.

An action is a function. In: one frozen dataclass (`RehearseRequest`), whose fields are typed values
and no words of a command line, and `notify`, which hears of progress. Out: one frozen dataclass, or
the client's own typed record (`Sweep`, `Run`). What goes wrong is raised as a `runyard.errors`.
An action neither prints nor asks on a terminal: what a person may want to read while it works are
events (`events.Event`), and where somebody has to agree first, the caller passes a function that
answers. `cli/` reads arguments into a request, calls one action, and prints.
"""
