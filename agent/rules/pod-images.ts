/**
 * A change of the image of a container: besides resources the only change of a container that runs. Source: upstream
 * pkg/kubelet/kuberuntime/kuberuntime_manager.go (containerChanged, computePodActions).
 */
import type { Container, KubePod } from '../../shared/kinds/types.ts';

const containersOf = ({ spec = {} }: KubePod): readonly Container[] => [
  ...(spec.initContainers ?? []),
  ...(spec.containers ?? []),
];

/** Names of the containers that have another image in `wanted` than in `recorded`. */
export function changedImages(wanted: KubePod, recorded: KubePod): ReadonlySet<string> {
  const images = new Map(containersOf(wanted).map(({ name, image }) => [name, image]));
  const changed = containersOf(recorded).filter(({ name, image }) => images.has(name) && images.get(name) !== image);
  return new Set(changed.map(({ name = '' }) => name));
}

/** `recorded` with the images of `wanted`. */
export function withImages(recorded: KubePod, wanted: KubePod): KubePod {
  const images = new Map(containersOf(wanted).map(({ name, image }) => [name, image]));
  const changed = (each: Container): Container => {
    const image = images.get(each.name);
    return image === undefined ? each : { ...each, image };
  };
  const { initContainers, containers } = recorded.spec ?? {};
  return {
    ...recorded,
    spec: {
      ...recorded.spec,
      ...(initContainers && { initContainers: initContainers.map(changed) }),
      ...(containers && { containers: containers.map(changed) }),
    },
  };
}
