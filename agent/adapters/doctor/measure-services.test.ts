import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import type { ServicesConfig } from '../../config.ts';
import type { NameAnswer } from '../../rules/services/names.ts';
import { serveNames } from '../services/name-server.ts';
import { readServices } from './measure-services.ts';

const HOST = '127.0.0.1';
afterEach(() => vi.unstubAllEnvs());

/** What is read with this script in place of nft, or without one. */
async function reading(
  nft: string | undefined,
  answer: (name: string, type: string) => NameAnswer,
  forwarding: string | undefined = '1\n',
) {
  const folder = folderForTest();
  if (forwarding !== undefined) writeFileSync(join(folder, 'ip_forward'), forwarding);
  vi.stubEnv('PATH', folder);
  if (nft !== undefined) {
    writeFileSync(join(folder, 'nft'), `#!/bin/sh\n${nft}\n`);
    chmodSync(join(folder, 'nft'), 0o755);
  }
  const server = await serveNames({
    address: HOST,
    port: 0,
    domain: 'cluster.local',
    answer,
    resolvers: async () => [],
  });
  const services = { dnsAddress: `${HOST}:${server.port}`, clusterDomain: 'cluster.local' } as ServicesConfig;
  const found = await readServices(services, join(folder, 'ip_forward'));
  await server.close();
  return found;
}

const version = (name: string, type: string): NameAnswer =>
  name === 'dns-version.cluster.local' && type === 'TXT'
    ? { kind: 'records', answers: [{ name, type: 'TXT', data: '1.1.0' }], additionals: [] }
    : { kind: 'unknown' };
const unknown = (): NameAnswer => ({ kind: 'unknown' });

it('a machine that routes no Services has nothing to measure', async () => {
  expect(await readServices(undefined)).toBeUndefined();
});

it.each([
  ['[ "$*" = "list tables" ]', undefined],
  ['echo " not permitted " >&2; exit 1', /^nft: not permitted$/],
  ['exit 1', /^nft: Command failed/],
  [undefined, /^the program nft is not installed$/],
])('with nft as %j the fault is %s', async (script, fault) => {
  const found = await reading(script, version);
  expect(found?.answersNames).toBe(true);
  if (fault === undefined) expect(found?.filterFault).toBeUndefined();
  else expect(found?.filterFault).toMatch(fault);
  expect(found?.isForwarding).toBe(true);
});

it('names are not answered without the one of the version', async () => {
  expect((await reading('exit 0', unknown))?.answersNames).toBe(false);
});

it.each([
  ['1\n', true],
  ['0\n', false],
])('packets are forwarded with %j: %s', async (text, isForwarding) => {
  expect((await reading('exit 0', unknown, text))?.isForwarding).toBe(isForwarding);
});
