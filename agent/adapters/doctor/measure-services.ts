/** Measurements for `nodekeeper-agent doctor` on a machine that routes Services. None changes anything, or rejects. */
import { Resolver } from 'node:dns/promises';
import type { ServicesConfig } from '../../config.ts';
import type { ServicesReading } from '../../rules/doctor-services.ts';
import { readFile } from '../system/files.ts';
import { type ProgramError, runProgram } from '../system/run-program.ts';

const BOUNDS = { timeoutMs: 10_000, outputBytesMax: 1024 * 1024 };
const ANSWER_MS = 2_000;
const FORWARDING = '/proc/sys/net/ipv4/ip_forward';

/** Undefined: Services are not routed. */
export async function readServices(
  services: ServicesConfig | undefined,
  forwarding = FORWARDING,
): Promise<ServicesReading | undefined> {
  if (services === undefined) return undefined;
  const [filterFault, isForwarding, answersNames] = await Promise.all([
    readFilter(),
    readFile(forwarding, 'utf8').then(
      (text) => text.trim() === '1',
      () => undefined,
    ),
    readNames(services),
  ]);
  return { filterFault, isForwarding, answersNames };
}

const readFilter = (): Promise<string | undefined> =>
  runProgram('nft', ['list', 'tables'], BOUNDS).then(
    () => undefined,
    ({ code, message }: ProgramError) => (code === 'ENOENT' ? 'the program nft is not installed' : `nft: ${message}`),
  );

async function readNames({ dnsAddress, clusterDomain }: ServicesConfig): Promise<boolean> {
  const resolver = new Resolver({ timeout: ANSWER_MS, tries: 1 });
  resolver.setServers([dnsAddress]);
  const versions = await resolver.resolveTxt(`dns-version.${clusterDomain}`).catch(() => []);
  return versions.length > 0;
}
