import { describe, expect, it } from 'vitest';
import { MessageError, MessageReader, messageBytes } from './loopback-message.ts';

const BODY_BYTES_MAX = 1_000;
const aReader = () => new MessageReader(BODY_BYTES_MAX);
const bytesOf = (text: string) => Buffer.from(text, 'latin1');
const texts = (messages: ReturnType<MessageReader['read']>) =>
  messages.map(({ startLine, body }) => `${startLine}: ${body.toString()}`);

describe('reading messages', () => {
  it('reads what it writes, in whatever parts it arrives, and without the headers of a connection', () => {
    const headers = [['x-amz-target', 'GetItem'] as const];
    const bytes = messageBytes('POST / HTTP/1.1', [['host', 'a:1'], ['Connection', 'keep-alive'], ...headers], 'ä{}');
    for (const size of [1, 7, bytes.length]) {
      const reader = aReader();
      const messages = [];
      for (let at = 0; at < bytes.length; at += size) messages.push(...reader.read(bytes.subarray(at, at + size)));
      expect(messages).toEqual([{ startLine: 'POST / HTTP/1.1', headers, body: Buffer.from('ä{}') }]);
    }
  });

  it('reads several messages that arrive together, and keeps the rest for the next one', () => {
    const reader = aReader();
    const message = (body: string) => messageBytes('HTTP/1.1 200 OK', [], body).toString();
    const all = message('one') + message('') + message('three');
    expect(texts(reader.read(bytesOf(all.slice(0, -2))))).toEqual(['HTTP/1.1 200 OK: one', 'HTTP/1.1 200 OK: ']);
    expect(texts(reader.read(bytesOf(all.slice(-2) + message('4'))))).toEqual([
      'HTTP/1.1 200 OK: three',
      'HTTP/1.1 200 OK: 4',
    ]);
  });

  it('reads a body in chunks, as other engines send it', () => {
    const reader = aReader();
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
    expect(reader.read(bytesOf(`${head}3\r\nabc\r\n4;x`))).toEqual([]);
    expect(texts(reader.read(bytesOf('=1\r\ndefg\r\n0\r\n\r\n')))).toEqual(['HTTP/1.1 200 OK: abcdefg']);
  });

  it.each([
    ['a body above the limit', 'POST / HTTP/1.1\r\ncontent-length: 1001\r\n\r\n', '1000 bytes'],
    ['chunks above the limit', 'POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n', '1000 bytes'],
    ['a length that is no number', 'POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n', 'content-length'],
    ['a chunk size that is no number', 'POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nx\r\n', 'chunk size'],
    ['a header without a name', 'POST / HTTP/1.1\r\nnonsense\r\n\r\n', 'without a name'],
    ['a head without an end', 'x'.repeat(65_537), 'head of more than'],
  ])('refuses %s', (_, text, reason) => {
    expect(() => aReader().read(bytesOf(text))).toThrow(MessageError);
    expect(() => aReader().read(bytesOf(text))).toThrow(reason);
  });
});
