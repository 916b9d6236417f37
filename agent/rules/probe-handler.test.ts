import { expect, it } from 'vitest';
import { httpTarget, portNumber } from './probe-handler.ts';

const container = { name: 'c', ports: [{ name: 'web', containerPort: 8080 }] };

it.each([
  [1, 1],
  [65_535, 65_535],
  ['web', 8080],
  ['80', 80],
])('the port %j is %i', (port, number) => {
  expect(portNumber(port, container)).toEqual({ kind: 'port', port: number });
});

it.each([
  [0, 'invalid port number: 0'],
  [-1, 'invalid port number: -1'],
  [65_536, 'invalid port number: 65536'],
  [1.5, 'invalid port number: 1.5'],
  ['other', "couldn't find port: other"],
  ['', "couldn't find port: "],
  [undefined, "couldn't find port: undefined"],
])('the port %j is none', (port, message) => {
  expect(portNumber(port, container)).toEqual({ kind: 'failed', message });
  expect(httpTarget({ port } as never, container, '10.0.0.1')).toEqual({ kind: 'failed', message });
});

it('a container without ports has numbers alone', () => {
  expect(portNumber('web', { name: 'c' }).kind).toBe('failed');
  expect(portNumber(5, { name: 'c' })).toEqual({ kind: 'port', port: 5 });
});

it('an HTTP probe requests the pod, its root, without headers', () => {
  const target = { scheme: 'http', host: '10.0.0.1', port: 8080, path: '/', headers: [] };
  expect(httpTarget({ port: 'web' }, container, '10.0.0.1')).toEqual({ kind: 'target', target });
  expect(httpTarget({ port: 'web', host: '' }, container, '10.0.0.1')).toEqual({ kind: 'target', target });
});

it('an HTTP probe requests what its fields say', () => {
  const httpHeaders = [{ name: 'A', value: 'b' }, {}] as { name: string; value: string }[];
  expect(httpTarget({ port: 1, host: 'h', path: '/p', scheme: 'https', httpHeaders }, container, '10.0.0.1')).toEqual({
    kind: 'target',
    target: {
      scheme: 'https',
      host: 'h',
      port: 1,
      path: '/p',
      headers: [
        ['A', 'b'],
        ['', ''],
      ],
    },
  });
});
