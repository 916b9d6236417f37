/** Where a cluster that has moved is now: a file in the root directory, which outlives the process. */
import { type ClusterAddress, clusterAddress } from '../../shared/agents/moved-cluster.ts';
import type { AgentConfig } from '../config.ts';

export const MOVED_FILE = 'moved.json';

/** `from`: the configured endpoint. A configuration that names another one is newer than the move. */
export const movedText = (from: string, { endpoint, certificateAuthority }: ClusterAddress): string =>
  `${JSON.stringify({ from, endpoint, certificateAuthority })}\n`;

/** The configuration with the new address. @param text of the file; undefined: there is none */
export function atNewAddress(config: AgentConfig, text: string | undefined): AgentConfig {
  const { from, endpoint, certificateAuthority } = parsed(text);
  const address = clusterAddress(endpoint, certificateAuthority);
  if (address === undefined || from !== config.endpoint) return config;
  const { certificateAuthority: _old, ...rest } = config;
  return { ...rest, ...address, configuredEndpoint: config.endpoint };
}

function parsed(text: string | undefined): { readonly [name: string]: unknown } {
  try {
    return (JSON.parse(text ?? '{}') ?? {}) as { readonly [name: string]: unknown };
  } catch {
    return {};
  }
}
