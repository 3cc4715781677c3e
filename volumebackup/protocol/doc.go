// Package protocol is the conversation between the client and the worker container: both ends, over any pipe.
//
// # Lines
//
// Each side writes JSON, one value a line. The worker speaks first:
//
//	worker  {"type":"hello","hello":{"protocol":2}}
//	client  {"op":"begin","lock_timeout_ms":10000,"arguments":{…}}
//	worker  {"type":"progress","progress":{…}}      any number of times
//	worker  {"type":"warning","warning":{…}}        any number of times
//	worker  {"type":"result","result":{…}}          or an error, exactly once
//	client  {"op":"pass","lock_timeout_ms":10000,"arguments":{…}}
//
// The worker answers one request at a time. A backup is a session of several requests: begin, an attach for each
// attachment, one pass or more, then publish or discard. Every other request stands alone.
//
// The end of the client's stream means that the client is gone: the worker stops at the next block, drops what is
// unfinished and ends. That is also how a request is cancelled. The end of the worker's stream before a result means
// that the worker died.
//
// Lines are at most [MaxLine] bytes long. Progress comes at most ten times a second. Paths and names inside volumes
// are bytes, not text; the type [Path] carries them through JSON.
//
// # Operations
//
// Each operation has a file of its own, with its arguments, their validation, its result and the client's call. One
// line in the list operations makes it known. Package worker has the same: a file with the handler, and a line.
//
// # Bytes
//
// While a request is under way, either side can send bytes to the other. A line announces each chunk, and the bytes
// follow the line at once:
//
//	client  {"op":…,"sends":true}                   bytes will come; else the worker reads none
//	client  {"frame":{"length":3}} LF abc           a chunk of 1 to [MaxChunk] bytes
//	client  {"frame":{"end":true}}                  no more will come
//	worker  {"type":"frame","frame":{"taken":3}}    three more bytes were read
//	worker  {"type":"frame","frame":{"length":2}} LF de
//	client  {"frame":{"taken":2}}
//	worker  {"type":"result","result":{}}           this ends the worker's bytes as well
//
// A sender never has more than [Window] bytes out that the reader has not taken. So neither side buffers more than
// that. A slow reader stops the sender of the bytes, but nothing else: both sides go on reading lines, and progress
// and results still come through.
//
// A side that sends more than the window, a chunk that is too long, or bytes after the end breaks the conversation.
// Frames that arrive after the result belong to the request that is over, and are dropped.
//
// Volume data of backups and restores never crosses the pipe: the worker has both the volumes and the store. Only
// attachments do, which are files of the client, and files that are copied out of an archive, as a tar.
package protocol
