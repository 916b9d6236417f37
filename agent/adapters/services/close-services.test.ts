import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { silentLog } from '../../../test/support/agent-api.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { closeServices } from './close-services.ts';
import { addLocalAddress, removeLocalAddress } from './local-address.ts';

afterEach(() => vi.unstubAllEnvs());

/** Scripts in place of nft and ip, which write down their calls. */
function programs(exits: { readonly nft?: number; readonly ip?: number } = {}) {
  const folder = folderForTest();
  const calls = join(folder, 'calls');
  const script = (name: string, line: string): void => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${line}\n`);
    chmodSync(join(folder, name), 0o755);
  };
  script('nft', `echo "nft $(cat)" >>${calls}; exit ${exits.nft ?? 0}`);
  script('ip', `echo "ip $*" >>${calls}; exit ${exits.ip ?? 0}`);
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
  return () => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []);
}

function served(text = '{"dnsAddress":"10.96.0.10","layout":1}') {
  const rootDirectory = folderForTest();
  const file = join(rootDirectory, 'services.json');
  writeFileSync(file, text);
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  return { close: () => closeServices({ rootDirectory }, log), isLeft: () => existsSync(file), warnings };
}

it('a machine that routed Services loses its tables, its address and its file', async () => {
  const calls = programs();
  const { close, isLeft, warnings } = served();
  await close();
  await close();
  const [nft = '', ...others] = calls();
  const names = ['ip', 'ip6'].flatMap((family) =>
    ['nodekeeper', 'nodekeeper-policy'].map((name) => ({ family, name })),
  );
  expect(JSON.parse(nft.replace(/^nft /, ''))).toEqual({
    nftables: names.flatMap((table) => [{ add: { table } }, { delete: { table } }]),
  });
  expect(others).toEqual(['ip address delete 10.96.0.10/32 dev lo']);
  expect([isLeft(), warnings]).toEqual([false, []]);
});

it('an address that the machine does not have is no fault', async () => {
  const calls = programs({ ip: 2 });
  const { close, isLeft } = served();
  await close();
  expect([calls().length, isLeft()]).toEqual([2, false]);
});

it('a table that stays is tried again at the next start', async () => {
  const calls = programs({ nft: 1 });
  const { close, isLeft, warnings } = served();
  await close();
  expect([calls().length, isLeft(), warnings]).toEqual([1, true, ['the rules of Services cannot be removed']]);
});

it('a machine that routed none changes nothing', async () => {
  const calls = programs();
  await closeServices({ rootDirectory: folderForTest() }, silentLog);
  expect(calls()).toEqual([]);
});

it('an address is one of the loopback interface, by its family', async () => {
  const calls = programs();
  await addLocalAddress('10.96.0.10');
  await addLocalAddress('fd00::a');
  await removeLocalAddress('fd00::a');
  expect(calls()).toEqual([
    'ip address replace 10.96.0.10/32 dev lo',
    'ip address replace fd00::a/128 dev lo',
    'ip address delete fd00::a/128 dev lo',
  ]);
});

it('an address that cannot be set is a fault', async () => {
  programs({ ip: 2 });
  await expect(addLocalAddress('10.96.0.10')).rejects.toThrow('Command failed: ip address replace');
});
