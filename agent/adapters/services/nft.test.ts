import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import type { NftCommand } from '../../rules/services/nft-table.ts';
import { nftPacketFilter } from './nft.ts';

const COMMANDS: readonly NftCommand[] = [{ add: { table: { family: 'ip', name: 'nodekeeper' } } }];
/** A shell in place of nft. */
const filter = (script: string) => nftPacketFilter(['/bin/sh', '-c', script, 'nft']);

it('a transaction is one run of nft, with JSON as its input', async () => {
  const folder = folderForTest();
  const [input, args] = [join(folder, 'input'), join(folder, 'args')];
  await filter(`cat >${input}; echo "$@" >${args}`).apply(COMMANDS);
  expect(JSON.parse(readFileSync(input, 'utf8'))).toEqual({ nftables: COMMANDS });
  expect(readFileSync(args, 'utf8')).toBe('-j -f -\n');
});

it.each([
  ['echo " a fault " >&2; exit 1', /^nft: a fault$/],
  ['cat >/dev/null; exit 1', /^nft: Command failed/],
  [`printf %0600d 0 >&2; exit 1`, /^nft: 0{500}$/],
  ['exit 127', /^the program nft is not installed$/],
])('a run %j fails with its reason', async (script, message) => {
  await expect(filter(script).apply(COMMANDS)).rejects.toMatchObject({
    name: 'PacketFilterError',
    message: expect.stringMatching(message),
    cause: expect.any(Error),
  });
});

it('a program that is not there is not installed', async () => {
  await expect(nftPacketFilter(['/nonexistent/nft']).apply(COMMANDS)).rejects.toThrow('nft is not installed');
});

it('a program that does not read a large transaction fails by its exit alone', async () => {
  const large = Array.from({ length: 20_000 }, () => COMMANDS[0]!);
  await expect(filter('exec 0<&-; echo full >&2; exit 1').apply(large)).rejects.toThrow('nft: full');
});
