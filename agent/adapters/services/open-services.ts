/** What routing Services needs of a machine with Linux. Loaded only when it is on, or was before. */
import type { Log } from '../../../shared/observability/log.ts';
import type { ServiceParts } from '../../app/services/service-parts.ts';
import type { AgentConfig, ServicesConfig } from '../../config.ts';
import { nftRemoval } from '../../rules/services/nft-table.ts';
import { SERVICE_TABLE } from '../../rules/services/service-table.ts';
import { PodmanCli } from '../runtime-podman/podman-cli.ts';
import { addLocalAddress, removeLocalAddress } from './local-address.ts';
import { machineResolver } from './machine-resolver.ts';
import { serveNames } from './name-server.ts';
import { nftPacketFilter } from './nft.ts';
import { podmanNetworks } from './podman-networks.ts';
import { removeServiceFile, servedAddress, serviceFile } from './service-file.ts';

export function openServices(
  config: AgentConfig,
  { dnsAddress, clusterDomain }: ServicesConfig,
  log: Log,
): ServiceParts {
  return {
    filter: nftPacketFilter(),
    memory: serviceFile(config, dnsAddress, log),
    podNetworks: config.runtime === 'podman' ? podmanNetworks(new PodmanCli('podman')) : async () => [],
    machineResolver,
    async serveNames(answer, onQuestion) {
      await addLocalAddress(dnsAddress);
      const resolvers = async () => machineResolver().nameservers;
      return serveNames({ address: dnsAddress, domain: clusterDomain, answer, resolvers, onQuestion });
    },
  };
}

/** Removes what this machine had for Services, once. */
export async function closeServices({ rootDirectory }: Pick<AgentConfig, 'rootDirectory'>, log: Log): Promise<void> {
  try {
    const address = await servedAddress(rootDirectory);
    if (address === undefined) return;
    const families = ['ip', 'ip6'] as const;
    await nftPacketFilter().apply(families.flatMap((family) => nftRemoval({ family, name: SERVICE_TABLE })));
    await removeLocalAddress(address);
    await removeServiceFile(rootDirectory);
    log.info('Services are no longer routed on this machine: its rules are removed');
  } catch (cause) {
    // The next start tries again.
    log.warn('the rules of Services cannot be removed', { cause });
  }
}
