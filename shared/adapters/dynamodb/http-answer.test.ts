import { describe, expect, it } from 'vitest';
import { readHttpAnswer } from './http-answer.ts';

const bytesOf = (...lines: string[]): Buffer => Buffer.from(lines.join('\r\n'), 'utf8');
const BODY = '{"text":"Grüße 🚀"}';
const PLAIN = bytesOf('HTTP/1.1 200 OK', `content-length: ${Buffer.byteLength(BODY)}`, '', BODY);
const CHUNKED = bytesOf('HTTP/1.1 503 Busy', 'Transfer-Encoding: chunked', '', '4', '<htm', '2;x=1', 'l>', '0', '', '');

describe('an answer of HTTP', () => {
  it('is read with its body, and its connection is kept', () => {
    expect(readHttpAnswer(PLAIN, false)).toEqual({ kind: 'whole', status: 200, body: BODY, isKept: true });
  });

  it('is read in chunks, whatever its status', () => {
    expect(readHttpAnswer(CHUNKED, false)).toEqual({ kind: 'whole', status: 503, body: '<html>', isKept: true });
  });

  it.each([
    ['with a length', PLAIN],
    ['in chunks', CHUNKED],
  ])('is partial until its last byte has come, %s', (_, bytes) => {
    for (let length = 0; length < bytes.length; length += 1) {
      expect(readHttpAnswer(bytes.subarray(0, length), false)).toEqual({ kind: 'partial' });
    }
  });

  it('without a length ends with its connection', () => {
    const bytes = bytesOf('HTTP/1.1 502 Bad Gateway', 'content-type: text/html', '', '<html>');
    expect(readHttpAnswer(bytes, false)).toEqual({ kind: 'partial' });
    expect(readHttpAnswer(bytes, true)).toEqual({ kind: 'whole', status: 502, body: '<html>', isKept: false });
  });

  it('that was cut off stays partial when its connection ends', () => {
    expect(readHttpAnswer(PLAIN.subarray(0, -1), true)).toEqual({ kind: 'partial' });
  });

  it.each([
    ['it says so', bytesOf('HTTP/1.1 200 OK', 'Connection: close', 'Content-Length: 2', '', '{}')],
    ['it speaks HTTP/1.0', bytesOf('HTTP/1.0 200 OK', 'content-length: 2', '', '{}')],
    ['more bytes came than belong to it', bytesOf('HTTP/1.1 200 OK', 'content-length: 2', '', '{}HTTP/1.1 200 OK')],
  ])('gives up its connection where %s', (_, bytes) => {
    expect(readHttpAnswer(bytes, false)).toMatchObject({ kind: 'whole', body: '{}', isKept: false });
  });

  it('goes by its chunks where it names a length too', () => {
    const bytes = bytesOf(
      'HTTP/1.1 200 OK',
      'content-length: 9',
      'transfer-encoding: chunked',
      '',
      '2',
      '{}',
      '0',
      '',
      '',
    );
    expect(readHttpAnswer(bytes, false)).toMatchObject({ kind: 'whole', body: '{}' });
  });

  it.each([
    ['another protocol', bytesOf('SSH-2.0-OpenSSH', '', '')],
    ['an interim answer', bytesOf('HTTP/1.1 100 Continue', '', '')],
    ['a coding that was not asked for', bytesOf('HTTP/1.1 200 OK', 'transfer-encoding: gzip, chunked', '', '')],
    ['a chunk without a size', bytesOf('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', 'xy', '')],
    ['a chunk longer than its size', bytesOf('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '1', '{}{}', '')],
    ['a head without an end', Buffer.alloc(20_000, 'a')],
  ])('is malformed: %s', (_, bytes) => {
    expect(readHttpAnswer(bytes, false)).toEqual({ kind: 'malformed' });
  });
});
