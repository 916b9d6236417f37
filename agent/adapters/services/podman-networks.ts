import { recordsOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import type { PodmanCli } from '../runtime-podman/podman-cli.ts';

const TIMEOUT_MS = 30_000;

/** The networks of podman's pods, as CIDRs. Read once: each read is two calls of podman. */
export function podmanNetworks(podman: Pick<PodmanCli, 'run' | 'json'>): () => Promise<readonly string[]> {
  let known: Promise<readonly string[]> | undefined;
  return () => {
    known ??= readNetworks(podman).catch((cause: unknown) => {
      known = undefined;
      throw cause;
    });
    return known;
  };
}

async function readNetworks(podman: Parameters<typeof podmanNetworks>[0]): Promise<readonly string[]> {
  const call = { timeoutMs: TIMEOUT_MS };
  const names = (await podman.run(['network', 'ls', '--quiet'], call)).split('\n').filter((name) => name !== '');
  if (names.length === 0) return [];
  const networks = await podman.json(['network', 'inspect', ...names], call);
  return networks.flatMap(({ subnets }) => recordsOf(subnets).map(({ subnet }) => textOf(subnet)));
}
