/** The volumes of pods in memory. */
import type { PodVolumes, VolumeFile, VolumeName } from '../../agent/ports/pod-volumes.ts';

export interface MemoryVolumes extends PodVolumes {
  /** Files by volume, as `<pod uid>/<volume>`. An emptyDir has none. */
  readonly written: ReadonlyMap<string, ReadonlyMap<string, VolumeFile>>;
  /** Bytes that each emptyDir uses. */
  usedPerVolume: number;
}

export function memoryVolumes(): MemoryVolumes {
  const written = new Map<string, ReadonlyMap<string, VolumeFile>>();
  const links = new Map<string, string>();
  const keyOf = ({ podUid, volume }: VolumeName): string => `${podUid}/${volume}`;
  const volumes: MemoryVolumes = {
    written,
    usedPerVolume: 0,
    writeFiles(name, files) {
      written.set(keyOf(name), files);
    },
    makeEmptyDir(name) {
      written.set(keyOf(name), new Map());
    },
    linkTo(name, path) {
      links.set(keyOf(name), path);
    },
    linkedPath: (name) => links.get(keyOf(name)),
    checkHostPath() {},
    pathOf: (name) => `/volumes/${keyOf(name)}`,
    subPathOf: (volumePath, subPath) => `${volumePath}/${subPath}`,
    identityOf: () => '0:0',
    isFile: () => false,
    usedBytes: async () => volumes.usedPerVolume,
    async remove(podUid) {
      for (const key of written.keys()) if (key.startsWith(`${podUid}/`)) written.delete(key);
    },
    podUids: () => [...new Set([...written.keys()].map((key) => key.split('/', 1)[0] ?? ''))],
  };
  return volumes;
}
