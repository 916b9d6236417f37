import { describe, expect, it } from 'vitest';
import { gatewayResponse } from './gateway-response.ts';

const respond = (value: unknown) => gatewayResponse(JSON.stringify(value));

describe('responses of an HTTP API', () => {
  it('sends status, headers and body as the function says', () => {
    const response = respond({
      statusCode: 201,
      headers: { 'Content-Type': 'application/json', 'Content-Length': 99 },
      body: '{"a":1}',
    });
    expect(response.statusCode).toBe(201);
    expect(response.headers).toEqual({ 'content-type': 'application/json' });
    expect(response.body.toString()).toBe('{"a":1}');
  });

  it('decodes a base64 body', () => {
    expect([...respond({ statusCode: 200, body: 'AAEC', isBase64Encoded: true }).body]).toEqual([0, 1, 2]);
  });

  it('sends headers with several values and cookies', () => {
    const { headers } = respond({ statusCode: 200, multiValueHeaders: { Warning: ['a', 'b'] }, cookies: ['x=1'] });
    expect(headers).toMatchObject({ warning: ['a', 'b'], 'set-cookie': ['x=1'] });
  });

  it('uses a value without statusCode as the body', () => {
    const response = respond({ hello: 1 });
    expect(response).toMatchObject({ statusCode: 200, headers: { 'content-type': 'application/json' } });
    expect(response.body.toString()).toBe('{"hello":1}');
  });

  it.each([
    [{ statusCode: 'soon' }],
    [{ statusCode: 200, body: { a: 1 } }],
    [{ statusCode: 999 }],
    [null],
    [{ statusCode: 200, headers: { warning: 'two\nlines' } }],
    [{ statusCode: 200, headers: { warning: '\u5927' } }],
    [{ statusCode: 200, headers: { 'a name': 'a' } }],
    [{ statusCode: 200, multiValueHeaders: { warning: ['one', 'two\r\n'] } }],
  ])('answers 500 to the malformed %j', (value) => {
    expect(respond(value)).toMatchObject({ statusCode: 500 });
    expect(respond(value).body.toString()).toBe('{"message":"Internal Server Error"}');
  });
});
