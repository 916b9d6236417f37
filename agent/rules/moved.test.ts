import { rootCertificates } from 'node:tls';
import { expect, it } from 'vitest';
import type { AgentConfig } from '../config.ts';
import { atNewAddress, movedText } from './moved.ts';

const config = { endpoint: 'https://old.example', certificateAuthority: 'old', nodeName: 'n1' } as AgentConfig;
const [authority = ''] = rootCertificates;
const moved = (from = config.endpoint) =>
  movedText(from, { endpoint: 'https://new.example', certificateAuthority: authority });

it('a configuration of the old address has the new one, and remembers what was configured', () => {
  expect(atNewAddress(config, moved())).toEqual({
    endpoint: 'https://new.example',
    certificateAuthority: authority,
    configuredEndpoint: 'https://old.example',
    nodeName: 'n1',
  });
  expect(moved().endsWith('\n')).toBe(true);
});

it('an authority that is no longer named is that of the system', () => {
  const text = movedText(config.endpoint, { endpoint: 'https://new.example' });
  expect(atNewAddress(config, text)).not.toHaveProperty('certificateAuthority');
});

it.each([
  ['no file', undefined],
  ['another configuration', moved('https://other.example')],
  ['no JSON', '{'],
  ['null', 'null'],
  ['no address', JSON.stringify({ from: config.endpoint })],
  ['an address that is none', JSON.stringify({ from: config.endpoint, endpoint: 'http://new.example' })],
])('the configuration stays with %s', (_, text) => {
  expect(atNewAddress(config, text)).toBe(config);
});
