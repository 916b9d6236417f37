/**
 * The place of the agent in the order in which Windows sends services the preshutdown control: before the services
 * that it depends on, because these stop after it.
 * Source: addToExistingOrder in pkg/kubelet/nodeshutdown/nodeshutdown_manager_windows.go.
 */

/** Names of services are the same in any case. */
const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
const has = (names: readonly string[], name: string): boolean => names.some((each) => isSame(each, name));

/** The order with `service` in its place. Without dependencies it stays as it is. */
export function preshutdownOrder(
  service: string,
  dependencies: readonly string[],
  existing: readonly string[],
): readonly string[] {
  if (dependencies.length === 0) return existing;
  const order = existing.filter((name) => !isSame(name, service));
  for (const dependency of dependencies) if (!has(order, dependency)) order.push(dependency);
  const first = order.findIndex((name) => has(dependencies, name));
  return order.toSpliced(first, 0, service);
}
