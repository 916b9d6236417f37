/** Group of a volume. Source: upstream pkg/volume/volume_linux.go (SetVolumeOwnership). */
import { chmodSync, lchownSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const READ_ONLY = 0o440;
const WRITABLE = 0o660;
const SEARCHABLE = 0o110;
const SET_GROUP_ID = 0o2000;
const PERMISSIONS = 0o7777;

/**
 * Sets the group of everything in a directory, and extends its permissions to the group. New files inherit the group.
 *
 * @param mode permission bits of the directory itself, if they change
 * @throws Error of the file system
 */
export function setGroup(
  directory: string,
  groupId: number | undefined,
  access: 'readOnly' | 'writable',
  mode?: number,
): void {
  if (mode !== undefined) chmodSync(directory, mode);
  if (groupId === undefined) return;
  const bits = access === 'readOnly' ? READ_ONLY : WRITABLE;
  const pending = [directory];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const stat = lstatSync(path);
    lchownSync(path, stat.uid, groupId);
    if (stat.isSymbolicLink()) continue;
    const own = stat.mode & PERMISSIONS;
    if (!stat.isDirectory()) chmodSync(path, own | bits);
    else {
      chmodSync(path, own | bits | SEARCHABLE | SET_GROUP_ID);
      for (const name of readdirSync(path)) pending.push(join(path, name));
    }
  }
}
