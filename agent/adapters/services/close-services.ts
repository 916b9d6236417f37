import type { Log } from '../../../shared/observability/log.ts';
import type { AgentConfig } from '../../config.ts';
import { POLICY_TABLE } from '../../rules/network-policy/policy-table.ts';
import { nftRemoval } from '../../rules/services/nft-table.ts';
import { SERVICE_TABLE } from '../../rules/services/service-table.ts';
import { removeLocalAddress } from './local-address.ts';
import { nftPacketFilter } from './nft.ts';
import { removeServiceFile, servedAddress } from './service-file.ts';

/** Removes what this machine had for Services, once. */
export async function closeServices({ rootDirectory }: Pick<AgentConfig, 'rootDirectory'>, log: Log): Promise<void> {
  try {
    const address = await servedAddress(rootDirectory);
    if (address === undefined) return;
    const families = ['ip', 'ip6'] as const;
    const tables = families.flatMap((family) => [SERVICE_TABLE, POLICY_TABLE].map((name) => ({ family, name })));
    await nftPacketFilter().apply(tables.flatMap(nftRemoval));
    await removeLocalAddress(address);
    await removeServiceFile(rootDirectory);
    log.info('Services are no longer routed on this machine: its rules are removed');
  } catch (cause) {
    // The next start tries again.
    log.warn('the rules of Services cannot be removed', { cause });
  }
}
