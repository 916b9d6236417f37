/**
 * File systems of a network, by the type that statfs(2) reports. SQLite's log needs memory that all processes share,
 * and locks and syncs that many of them do not keep (sqlite.org/wal.html, sqlite.org/howtocorrupt.html).
 */
import { statfsSync } from 'node:fs';

const NETWORK_TYPES: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4266872130: 'SMB',
  4283649346: 'SMB',
  16914839: '9P',
  12805120: 'Ceph',
  1397113167: 'AFS',
  1952539503: 'OCFS2',
  18225520: 'GFS2',
  198183888: 'Lustre',
};

/** The name of the network file system that the directory is on; undefined: it is on none that is known. */
export function networkDiskOf(directory: string, typeOf = (path: string) => statfsSync(path).type): string | undefined {
  return NETWORK_TYPES[typeOf(directory)];
}
