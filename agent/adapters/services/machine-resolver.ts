import { readFileSync } from 'node:fs';
import { parseResolver, type ResolverConfig } from '../../rules/services/pod-resolver.ts';

const PATH = '/etc/resolv.conf';

/** The current resolver of this machine: DHCP changes the file at any time. Nothing without a file. */
export function machineResolver(path = PATH): ResolverConfig {
  try {
    return parseResolver(readFileSync(path, 'utf8'));
  } catch {
    return { nameservers: [], searches: [], options: [] };
  }
}
