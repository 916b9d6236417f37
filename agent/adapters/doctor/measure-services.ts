/** Measurements for `nodekeeper-agent doctor` on a machine that routes Services. None changes anything, or rejects. */
import { execFile } from 'node:child_process';
import { Resolver } from 'node:dns/promises';
import type { ServicesConfig } from '../../config.ts';
import type { ServicesReading } from '../../rules/doctor-services.ts';
import { readFile } from '../system/files.ts';

const COMMAND_MS = 10_000;
const ANSWER_MS = 2_000;
const FORWARDING = '/proc/sys/net/ipv4/ip_forward';

/** Undefined: Services are not routed. */
export async function readServices(services: ServicesConfig | undefined): Promise<ServicesReading | undefined> {
  if (services === undefined) return undefined;
  const [filterFault, isForwarding, answersNames] = await Promise.all([
    readFilter(),
    readFile(FORWARDING, 'utf8').then(
      (text) => text.trim() === '1',
      () => undefined,
    ),
    readNames(services),
  ]);
  return { filterFault, isForwarding, answersNames };
}

const readFilter = (): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile('nft', ['list', 'tables'], { timeout: COMMAND_MS }, (cause, _output, errors) => {
      if (cause === null) resolve(undefined);
      else
        resolve(
          cause.code === 'ENOENT' ? 'the program nft is not installed' : `nft: ${errors.trim() || cause.message}`,
        );
    });
  });

async function readNames({ dnsAddress, clusterDomain }: ServicesConfig): Promise<boolean> {
  const resolver = new Resolver({ timeout: ANSWER_MS, tries: 1 });
  resolver.setServers([dnsAddress]);
  const versions = await resolver.resolveTxt(`dns-version.${clusterDomain}`).catch(() => []);
  return versions.length > 0;
}
