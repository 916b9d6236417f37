import { cloneJson, isJsonObject, type JsonObject, jsonEqual, nestsDeeperThan, setMember } from '../json.ts';
import { malformed, PATCH_DEPTH_MAX, PatchRefused, type PatchResult, PatchWork, unprocessable } from './result.ts';

/** Operations in one patch; the limit of kube-apiserver. */
export const JSON_PATCH_OPERATIONS_MAX = 10_000;
/** Characters of JSON that all `copy` operations of a patch may add. Repeated copies double the size each time. */
export const JSON_PATCH_COPIED_CHARACTERS_MAX = 3_145_728;

/** Work units of one operation without its values: its pointer is parsed and followed a few times (PatchWork). */
const OPERATION_WORK = 4;
/** Moving this many list items costs one work unit. */
const ITEMS_SHIFTED_PER_UNIT = 100;

/** Prefix of the message of an unprocessable patch, as in upstream. */
const REFUSED = 'the server rejected our request due to an error in our request';
const OPERATIONS = new Set(['add', 'remove', 'replace', 'move', 'copy', 'test']);

/**
 * Applies `application/json-patch+json` (RFC 6902): all operations or none. Pointers follow own members and canonical
 * list indices only.
 */
export function applyJsonPatch(target: Readonly<JsonObject>, patch: unknown): PatchResult {
  if (!Array.isArray(patch)) return malformed('a JSON patch must be a list of operations');
  if (patch.length > JSON_PATCH_OPERATIONS_MAX) {
    return {
      kind: 'tooLarge',
      message: `The allowed maximum operations in a JSON patch is ${JSON_PATCH_OPERATIONS_MAX}, got ${patch.length}`,
    };
  }
  if (nestsDeeperThan(patch, PATCH_DEPTH_MAX)) return malformed(`a patch nests at most ${PATCH_DEPTH_MAX} levels deep`);
  const root: Root = { value: cloneJson(target), copiedCharacters: 0, work: new PatchWork() };
  try {
    for (const [index, operation] of patch.entries()) applyOperation(root, readOperation(operation, index));
  } catch (error) {
    if (error instanceof PatchRefused) return error.refusal;
    throw error;
  }
  if (!isJsonObject(root.value)) return unprocessable(`${REFUSED}: the result is not an object`);
  if (nestsDeeperThan(root.value, PATCH_DEPTH_MAX)) return unprocessable(`${REFUSED}: the result nests too deep`);
  return { kind: 'patched', object: root.value };
}

/** The patched object and the work that was spent on it. */
interface Root {
  value: unknown;
  copiedCharacters: number;
  readonly work: PatchWork;
}

interface ReadOperation {
  readonly op: string;
  readonly path: string;
  readonly from: string;
  readonly value: unknown;
}

function readOperation(operation: unknown, index: number): ReadOperation {
  if (!isJsonObject(operation))
    throw new PatchRefused(malformed(`operation ${index} of the JSON patch is not an object`));
  const { op, path, from } = operation;
  if (typeof op !== 'string' || !OPERATIONS.has(op)) {
    throw new PatchRefused(
      malformed(`operation ${index} of the JSON patch has an unknown op: ${JSON.stringify(op ?? null)}`),
    );
  }
  const needsFrom = op === 'move' || op === 'copy';
  const needsValue = op === 'add' || op === 'replace' || op === 'test';
  if (!isPointer(path))
    throw new PatchRefused(malformed(`operation ${index} of the JSON patch (${op}) needs a JSON pointer as path`));
  if (needsFrom && !isPointer(from)) {
    throw new PatchRefused(malformed(`operation ${index} of the JSON patch (${op}) needs a JSON pointer as from`));
  }
  if (needsValue && !Object.hasOwn(operation, 'value')) {
    throw new PatchRefused(malformed(`operation ${index} of the JSON patch (${op}) needs a value`));
  }
  return { op, path, from: needsFrom ? (from as string) : '', value: operation['value'] };
}

/** True for a JSON pointer of at most PATCH_DEPTH_MAX tokens. No operation can nest values deeper than that. */
function isPointer(path: unknown): path is string {
  if (typeof path !== 'string') return false;
  return path === '' || (path.startsWith('/') && path.split('/').length <= PATCH_DEPTH_MAX);
}

function applyOperation(root: Root, operation: ReadOperation): void {
  const { op, path, from, value } = operation;
  root.work.spend(OPERATION_WORK);
  switch (op) {
    case 'test': {
      const found = lookUp(root.value, path);
      if (!found.exists || !jsonEqual(found.value, value)) throw refused(`testing value ${path} failed`);
      return;
    }
    case 'add':
      add(root, path, value);
      return;
    case 'remove':
      remove(root, path);
      return;
    case 'replace':
      replace(root, path, value);
      return;
    case 'copy': {
      const copied = existing(root, from, 'copy');
      root.copiedCharacters += JSON.stringify(copied).length;
      if (root.copiedCharacters > JSON_PATCH_COPIED_CHARACTERS_MAX) {
        throw new PatchRefused({ kind: 'tooLarge', message: 'The copy operations of the JSON patch copy too much' });
      }
      add(root, path, copied);
      return;
    }
    default: {
      if (path.startsWith(`${from}/`)) throw refused(`move: ${from} cannot be moved into itself`);
      const moved = existing(root, from, 'move');
      if (path === from) return;
      remove(root, from);
      add(root, path, moved);
    }
  }
}

function add(root: Root, path: string, value: unknown): void {
  root.work.spendOn(value);
  if (path === '') {
    root.value = cloneJson(value);
    return;
  }
  const { parent, key } = parentOf(root.value, path, 'add');
  if (!Array.isArray(parent)) {
    setMember(parent, key, cloneJson(value));
    return;
  }
  root.work.spend(parent.length / ITEMS_SHIFTED_PER_UNIT);
  const index = key === '-' ? parent.length : listIndex(key, parent.length);
  if (index === undefined) throw missing('add', path);
  parent.splice(index, 0, cloneJson(value));
}

function remove(root: Root, path: string): void {
  if (path === '') throw refused('remove: the whole object cannot be removed');
  existing(root, path, 'remove');
  const { parent, key } = parentOf(root.value, path, 'remove');
  if (Array.isArray(parent)) {
    root.work.spend(parent.length / ITEMS_SHIFTED_PER_UNIT);
    parent.splice(Number(key), 1);
  } else delete parent[key];
}

function replace(root: Root, path: string, value: unknown): void {
  existing(root, path, 'replace');
  root.work.spendOn(value);
  if (path === '') {
    root.value = cloneJson(value);
    return;
  }
  const { parent, key } = parentOf(root.value, path, 'replace');
  if (Array.isArray(parent)) parent[Number(key)] = cloneJson(value);
  else setMember(parent, key, cloneJson(value));
}

function existing(root: Root, path: string, op: string): unknown {
  const found = lookUp(root.value, path);
  if (!found.exists) throw missing(op, path);
  root.work.spendOn(found.value);
  if (nestsDeeperThan(found.value, PATCH_DEPTH_MAX)) throw refused(`${op}: ${path} nests too deep`);
  return found.value;
}

/** The list or object that contains the target of a pointer, and the last token of the pointer. */
function parentOf(value: unknown, path: string, op: string): { parent: unknown[] | JsonObject; key: string } {
  const cut = path.lastIndexOf('/');
  const { value: parent } = lookUp(value, path.slice(0, cut));
  if (!Array.isArray(parent) && !isJsonObject(parent)) throw missing(op, path);
  return { parent, key: unescapeToken(path.slice(cut + 1)) };
}

function lookUp(root: unknown, path: string): { exists: boolean; value: unknown } {
  let value = root;
  for (const token of path.split('/').slice(1)) {
    const key = unescapeToken(token);
    if (Array.isArray(value)) {
      const index = listIndex(key, value.length - 1);
      if (index === undefined) return { exists: false, value: undefined };
      value = value[index];
    } else if (isJsonObject(value) && Object.hasOwn(value, key)) {
      value = value[key];
    } else {
      return { exists: false, value: undefined };
    }
  }
  return { exists: true, value };
}

/** A list index without sign or leading zero, at most `indexMax`. */
function listIndex(token: string, indexMax: number): number | undefined {
  if (!/^(?:0|[1-9][0-9]{0,9})$/.test(token)) return undefined;
  const index = Number(token);
  return index <= indexMax ? index : undefined;
}

function unescapeToken(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}

function refused(reason: string): PatchRefused {
  return new PatchRefused(unprocessable(`${REFUSED}: ${reason}`));
}

function missing(op: string, path: string): PatchRefused {
  return refused(`${op} operation does not apply: doc is missing path: ${path}`);
}
