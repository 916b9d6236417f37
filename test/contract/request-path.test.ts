/**
 * The path of a request through both fronts. An HTTP API decodes it, a function URL passes it as sent. The handlers
 * must read the same path, and a ticket for a watch must fit the path after the redirect.
 */
import type { LambdaFunctionURLEvent } from 'aws-lambda';
import { expect, it } from 'vitest';
import { gatewayEvent } from '../../aws-local/http/gateway-event.ts';
import { redirectWatches, TICKET_PARAMETER, watchTarget } from '../../shared/api/watch/watch-redirect.ts';
import { requestOf, requestOfUrl } from '../../shared/aws/http-event.ts';

const CONTEXT = { routeKey: '$default', requestId: '1', accountId: '1', apiId: 'a', domainName: 'a', nowMs: 0 };

const eventOf = (target: string, pathEncoded: boolean) =>
  gatewayEvent(
    { method: 'GET', target, rawHeaders: [], body: Buffer.alloc(0), sourceIp: '127.0.0.1', protocol: 'HTTP/1.1' },
    { ...CONTEXT, pathEncoded },
  ) as unknown as LambdaFunctionURLEvent;

const throughApi = (target: string) => requestOf(eventOf(target, false));
const throughUrl = (target: string) => requestOfUrl(eventOf(target, true));

const PATHS = [
  ['/api/v1/nodes/n1', '/api/v1/nodes/n1'],
  ['/api/v1/namespaces/a%2Fb/pods', '/api/v1/namespaces/a/b/pods'],
  ['/api/v1/namespaces/gr%C3%BC%C3%9Fe/pods', '/api/v1/namespaces/gr\u00fc\u00dfe/pods'],
  ['/api/v1/namespaces/%E6%9D%B1/pods', '/api/v1/namespaces/\u6771/pods'],
  ['/api/v1/nodes/a%20b', '/api/v1/nodes/a b'],
  ['/api/v1/nodes/a%23b', '/api/v1/nodes/a#b'],
  ['/api/v1/nodes/a%3Fb', '/api/v1/nodes/a'],
  ['/api/v1/nodes/100%', '/api/v1/nodes/100%'],
] as const;

it.each(PATHS)('the path %s is %s behind both fronts', (sent, path) => {
  expect([throughApi(sent).path, throughUrl(sent).path]).toEqual([path, path]);
});

it.each(PATHS)('a watch of %s is redirected to a location in ASCII, where its ticket fits', async (sent) => {
  let signed = '';
  const issue = async ({ target }: { target: string }) => {
    signed = target;
    return 'ticket';
  };
  const request = throughApi(`${sent}?watch=1&labelSelector=a%3Db`);
  const redirect = redirectWatches('https://watch.example', { issue } as never);
  const watch = { resourceVersion: '5', sendInitialEvents: false };
  const answer = await redirect({ storage: {} } as never, watch as never, { request, user: {}, nowMs: 0 } as never);
  const location = answer.headers['location'] ?? '';
  expect(location).toMatch(/^[\x21-\x7e]+$/);
  const followed = throughUrl(location.slice('https://watch.example'.length));
  expect(followed.query.get(TICKET_PARAMETER)).toBe('ticket');
  expect(watchTarget(followed.path, followed.query)).toBe(signed);
});
