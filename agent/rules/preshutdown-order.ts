/**
 * In which order Windows tells its services that it goes down: the value PreshutdownOrder of the registry.
 * Source: addToExistingOrder in pkg/kubelet/nodeshutdown/nodeshutdown_manager_windows.go.
 */
const OURS = 'kubelet';

/** With our service before the first of those it depends on, which end after it. Without any the order stays. */
export function preshutdownOrder(existing: readonly string[], dependencies: readonly string[]): readonly string[] {
  if (dependencies.length === 0) return existing;
  const others = existing.filter((service) => service.toLowerCase() !== OURS);
  const order = [...others, ...dependencies.filter((service) => !others.includes(service))];
  const first = order.findIndex((service) => dependencies.includes(service));
  return order.toSpliced(first, 0, OURS);
}
