/**
 * Which node ports a Service needs. Pure.
 * Source: pkg/registry/core/service/storage: alloc.go (initNodePorts, updateNodePorts), storage.go
 * (patchAllocatedValues).
 */
import type { KubeService, ServicePort, ServiceSpec } from '../types.ts';

/** The default of --service-node-port-range. */
export const FIRST_NODE_PORT = 30_000;
export const LAST_NODE_PORT = 32_767;

export const needsNodePorts = ({ type }: ServiceSpec = {}): boolean => type === 'NodePort' || type === 'LoadBalancer';

const assignsThem = (spec: ServiceSpec): boolean =>
  spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false);

export const nodePortsOf = ({ spec }: KubeService): readonly number[] => [
  ...new Set((spec?.ports ?? []).flatMap(({ nodePort = 0 }) => (nodePort > 0 ? [nodePort] : []))),
];

/** Indexes of the ports that need a node port. Those with one port number for several protocols share theirs. */
export function portsToAssign(spec: ServiceSpec): readonly (readonly number[])[] {
  if (!assignsThem(spec)) return [];
  const { ports = [] } = spec;
  const byNumber = new Map<number, number[]>();
  for (const [index, { port = 0, nodePort = 0 }] of ports.entries()) {
    const isShared = ports.some((other) => other.port === port && (other.nodePort ?? 0) > 0);
    if (nodePort === 0 && !isShared) byNumber.set(port, [...(byNumber.get(port) ?? []), index]);
  }
  return [...byNumber.values()];
}

/** A port without a node port has that of another protocol with its number. */
export const withSharedPorts = (ports: readonly ServicePort[]): ServicePort[] =>
  ports.map((port) => {
    const shared = ports.find((other) => other.port === port.port && (other.nodePort ?? 0) > 0)?.nodePort;
    return (port.nodePort ?? 0) > 0 || shared === undefined ? port : { ...port, nodePort: shared };
  });

/** An update without node ports keeps the stored ones, by the names of the ports. */
export function withOldNodePorts(next: KubeService, old: KubeService): KubeService {
  if (!needsNodePorts(next.spec) || !needsNodePorts(old.spec)) return next;
  const used = new Set(nodePortsOf(next));
  const known = new Map((old.spec?.ports ?? []).map(({ name = '', nodePort = 0 }) => [name, nodePort]));
  const ports = (next.spec?.ports ?? []).map((port) => {
    const nodePort = known.get(port.name ?? '') ?? 0;
    return (port.nodePort ?? 0) > 0 || nodePort === 0 || used.has(nodePort) ? port : { ...port, nodePort };
  });
  return { ...next, spec: { ...next.spec, ports } };
}
