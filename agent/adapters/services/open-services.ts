/** What routing Services needs of a machine with Linux. Loaded only when it is on. */
import { readFile } from 'node:fs/promises';
import type { Log } from '../../../shared/observability/log.ts';
import type { ServiceParts } from '../../app/services/service-parts.ts';
import type { AgentConfig, ServicesConfig } from '../../config.ts';
import { PodmanCli } from '../runtime-podman/podman-cli.ts';
import { addLocalAddress } from './local-address.ts';
import { machineResolver } from './machine-resolver.ts';
import { serveNames } from './name-server.ts';
import { nftPacketFilter } from './nft.ts';
import { podmanNetworks } from './podman-networks.ts';
import { serviceFile } from './service-file.ts';

/** There is none without the kernel module br_netfilter. */
const BRIDGES = '/proc/sys/net/bridge/bridge-nf-call-iptables';

export function openServices(
  config: AgentConfig,
  { dnsAddress, clusterDomain }: ServicesConfig,
  log: Log,
): ServiceParts {
  return {
    filter: nftPacketFilter(),
    memory: serviceFile(config, dnsAddress, log),
    podNetworks: config.runtime === 'podman' ? podmanNetworks(new PodmanCli('podman')) : async () => [],
    filtersBridges: async () => (await readFile(BRIDGES, 'utf8').catch(() => '')).trim() === '1',
    machineResolver,
    async serveNames(answer, onQuestion) {
      await addLocalAddress(dnsAddress);
      const resolvers = async () => machineResolver().nameservers;
      return serveNames({ address: dnsAddress, domain: clusterDomain, answer, resolvers, onQuestion });
    },
  };
}
