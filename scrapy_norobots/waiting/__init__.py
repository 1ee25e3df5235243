"""Where requests wait for robots.txt, and until when: in a scheduler around the user's own.

`scheduler` gives the engine only requests whose robots.txt is known, and whose site is open or given up;
`parking` finds the next of them. `states` has the states of a request, and `source` the user's scheduler.
`sites` loads the files that requests wait for, a few at a time. `slot_lines` keeps the requests that may go
on until their download slot can send them. `downloader` leaves downloads of robots.txt out of the count of
`CONCURRENT_REQUESTS`, and keeps requests that no middleware has answered until their slot can send them. May
import everything but the add-on and the commands.
"""
