import { expect, it } from 'vitest';
import { durationSeconds, promiseOfSilence } from './planned-silence.ts';
import { certificateAge, daysLeft } from './relay-certificate.ts';
import { apiServiceVariables } from './service-variables.ts';

it.each([
  ['90', 90],
  ['90s', 90],
  ['30m', 1_800],
  ['2h', 7_200],
  ['1d', 86_400],
  ['999999999', 999_999_999],
  ['1000000000', undefined],
  ['0', undefined],
  ['0h', undefined],
  ['', undefined],
  ['m', undefined],
  ['1w', undefined],
  ['-1', undefined],
  ['1.5h', undefined],
  ['1 h', undefined],
  ['x1h', undefined],
])('the duration %j is %j seconds', (text, seconds) => {
  expect(durationSeconds(text)).toBe(seconds);
});

it.each([
  ['nightly', 'nightly'],
  ['', null],
])('a promise with the reason %j sets both annotations of the Node', (reason, written) => {
  expect(promiseOfSilence('n', 60_000, reason)).toEqual({
    method: 'PATCH',
    path: '/api/v1/nodes/n',
    contentType: 'application/merge-patch+json',
    body: {
      metadata: {
        annotations: {
          'nodekeeper.dev/planned-silence-until': '1970-01-01T00:01:00Z',
          'nodekeeper.dev/planned-silence-reason': written,
        },
      },
    },
  });
});

it('a certificate expires soon in its last 30 days', () => {
  const dayMs = 86_400_000;
  const ages = [0, 1, 30 * dayMs, 30 * dayMs + 1].map((leftMs) => certificateAge(leftMs + 5, 5));
  expect(ages).toEqual(['expired', 'expiresSoon', 'expiresSoon', 'valid']);
  expect([0, dayMs - 1, dayMs].map((leftMs) => daysLeft(leftMs + 5, 5))).toEqual([0, 0, 1]);
});

it.each([
  ['https://api.example.com:6443/x', 'api.example.com', '6443'],
  ['https://api.example.com', 'api.example.com', '443'],
])('a pod finds the API of %s', (endpoint, host, port) => {
  expect(apiServiceVariables(endpoint)).toEqual({
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
    KUBERNETES_SERVICE_PORT_HTTPS: port,
  });
});

it('a pod finds no API of a text that is no URL', () => {
  expect(apiServiceVariables('api')).toEqual({});
});
