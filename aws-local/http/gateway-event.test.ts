import { describe, expect, it } from 'vitest';
import { type GatewayRequest, gatewayEvent, splitTarget } from './gateway-event.ts';

const context = {
  routeKey: '$default',
  requestId: 'r-1',
  accountId: '000000000000',
  apiId: 'Api',
  domainName: '127.0.0.1:6443',
  nowMs: Date.UTC(2026, 10, 20, 17, 44, 5),
};

function event(
  request: Partial<GatewayRequest> = {},
  more: Partial<typeof context> & { pathParameters?: Record<string, string> } = {},
) {
  return gatewayEvent(
    {
      method: 'GET',
      target: '/',
      rawHeaders: [],
      body: Buffer.alloc(0),
      sourceIp: '127.0.0.1',
      protocol: 'HTTP/1.1',
      ...request,
    },
    { ...context, ...more },
  );
}

describe('events of an HTTP API', () => {
  it('carries the request in format 2.0', () => {
    const built = event(
      {
        method: 'PUT',
        target: '/a/b?x=1',
        rawHeaders: ['User-Agent', 'kubectl', 'Host', 'h:1'],
        body: Buffer.from('{}'),
      },
      { routeKey: 'PUT /a/{n}', pathParameters: { n: 'b' } },
    );
    expect(built).toEqual({
      version: '2.0',
      routeKey: 'PUT /a/{n}',
      rawPath: '/a/b',
      rawQueryString: 'x=1',
      headers: {
        'user-agent': 'kubectl',
        host: 'h:1',
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-port': '6443',
        'x-forwarded-proto': 'https',
      },
      queryStringParameters: { x: '1' },
      pathParameters: { n: 'b' },
      requestContext: {
        accountId: '000000000000',
        apiId: 'Api',
        domainName: '127.0.0.1:6443',
        domainPrefix: '127',
        http: { method: 'PUT', path: '/a/b', protocol: 'HTTP/1.1', sourceIp: '127.0.0.1', userAgent: 'kubectl' },
        requestId: 'r-1',
        routeKey: 'PUT /a/{n}',
        stage: '$default',
        time: '20/Nov/2026:17:44:05 +0000',
        timeEpoch: context.nowMs,
      },
      body: '{}',
      isBase64Encoded: false,
    });
  });

  it('leaves out what is not there', () => {
    const built = event();
    expect(built).not.toHaveProperty('body');
    expect(built).not.toHaveProperty('cookies');
    expect(built).not.toHaveProperty('queryStringParameters');
    expect(built).not.toHaveProperty('pathParameters');
    expect(built.isBase64Encoded).toBe(false);
  });

  it('lower-cases header names, joins repeated ones and separates cookies', () => {
    const built = event({
      rawHeaders: [
        'Accept',
        'a',
        'ACCEPT',
        'b',
        'Cookie',
        'x=1; y=2',
        'Connection',
        'keep-alive',
        'Authorization',
        'Bearer t',
      ],
    });
    expect(built.headers).toMatchObject({ accept: 'a,b', authorization: 'Bearer t' });
    expect(built.headers).not.toHaveProperty('connection');
    expect(built.headers).not.toHaveProperty('cookie');
    expect(built.cookies).toEqual(['x=1', 'y=2']);
  });

  it('reads the host of an HTTP/2 request from its pseudo header', () => {
    expect(event({ rawHeaders: [':method', 'GET', ':authority', 'h:1'] }).headers).toMatchObject({ host: 'h:1' });
  });

  it('decodes the path but not the query string', () => {
    const built = event({ target: '/api/v1/nodes/a%20b?fieldSelector=spec.nodeName%3Dn1&x=1&x=2' });
    expect(built.rawPath).toBe('/api/v1/nodes/a b');
    expect(built.rawQueryString).toBe('fieldSelector=spec.nodeName%3Dn1&x=1&x=2');
    expect(built.queryStringParameters).toEqual({ fieldSelector: 'spec.nodeName=n1', x: '1,2' });
  });

  it('ends the path at a decoded question mark, as the service does', () => {
    expect(splitTarget('/a%3Fb/c?q=1')).toEqual({ path: '/a', query: 'q=1' });
    expect(splitTarget('/a%zz')).toEqual({ path: '/a%zz', query: '' });
  });

  it.each([
    ['application/json', false],
    ['application/json; charset=utf-8', false],
    ['text/plain', false],
    ['application/strategic-merge-patch+json', false],
    ['', false],
    ['application/vnd.kubernetes.protobuf', true],
    ['application/octet-stream', true],
    ['application/apply-patch+yaml', true],
    ['application/x-www-form-urlencoded', true],
  ])('body of type "%s" in base64: %s', (type, encoded) => {
    const built = event({ method: 'POST', rawHeaders: ['Content-Type', type], body: Buffer.from('{"a":1}') });
    expect(built.isBase64Encoded).toBe(encoded);
    expect(built.body).toBe(encoded ? Buffer.from('{"a":1}').toString('base64') : '{"a":1}');
  });
});
