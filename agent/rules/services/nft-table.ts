/**
 * A table of nftables as data, and the transaction that brings the kernel to it. Forms: libnftables-json(5).
 *
 * The kernel applies a transaction as a whole or not at all, so packets never meet half of one. The first transaction
 * of a process replaces the table, whatever it contains. Later ones contain the differences: an update costs what has
 * changed, and sets keep what the kernel itself has added to them.
 *
 * A chain that is not used any more is emptied at first, and deleted by the next transaction. Kernels before 6.2 refuse
 * to delete a chain in the transaction that removes the last map element that leads to it (upstream
 * pkg/proxy/nftables/proxier.go, staleChains).
 */
export type NftExpression = Readonly<Record<string, unknown>>;
export type NftRule = readonly NftExpression[];
/** A command of `nft -j`. */
export type NftCommand = Readonly<Record<string, unknown>>;

export interface NftChain {
  /** Absent: a chain that others lead to. */
  readonly hook?: { readonly type: 'nat' | 'filter'; readonly hook: string; readonly prio: number };
  readonly rules: readonly NftRule[];
}

/** A set; with `map` a map of verdicts. All but the elements follows from the name, and never changes. */
export interface NftSet {
  readonly type: string | readonly string[];
  readonly map?: 'verdict';
  readonly flags?: readonly string[];
  /** By the text of the key. A pair is an element of a map. */
  readonly elements: ReadonlyMap<string, unknown>;
}

export interface NftTable {
  readonly family: 'ip' | 'ip6' | 'inet';
  readonly name: string;
  /** In an order in which a chain is before those that lead to it. */
  readonly chains: ReadonlyMap<string, NftChain>;
  readonly sets: ReadonlyMap<string, NftSet>;
}

/** What the kernel has after a transaction. */
export interface NftState {
  readonly table: NftTable;
  /** Chains without rules, which the next transaction deletes. */
  readonly emptied: readonly string[];
}

export interface NftUpdate {
  /** None: nothing differs. */
  readonly commands: readonly NftCommand[];
  readonly state: NftState;
}

/** @param before what the kernel has; undefined: unknown */
export function nftUpdate(before: NftState | undefined, next: NftTable): NftUpdate {
  const write = new Commands(next);
  if (before === undefined) return { commands: write.everything(next), state: { table: next, emptied: [] } };
  const gone = [...before.table.chains.keys()].filter((name) => !next.chains.has(name));
  write.additions(before.table, next);
  write.removals(before.table, next, gone);
  const old = before.emptied.filter((name) => !next.chains.has(name));
  // Alone it is no reason for a transaction.
  const emptied = write.commands.length === 0 ? old : gone;
  if (write.commands.length > 0) for (const name of old) write.add('delete', 'chain', { name });
  return { commands: write.commands, state: { table: next, emptied } };
}

/** Removes a table, if there is one. */
export const nftRemoval = ({ family, name }: Pick<NftTable, 'family' | 'name'>): readonly NftCommand[] => [
  { add: { table: { family, name } } },
  { delete: { table: { family, name } } },
];

/** Changes nothing, and fails if the table is not there. */
export function nftCheck({ table }: NftState): readonly NftCommand[] {
  const write = new Commands(table);
  const [first] = table.chains;
  if (first !== undefined) write.rules(first[0], first[1].rules, true);
  return write.commands;
}

class Commands {
  readonly commands: NftCommand[] = [];
  readonly #family: string;
  readonly #table: string;

  constructor({ family, name }: NftTable) {
    this.#family = family;
    this.#table = name;
  }

  add(verb: 'add' | 'delete' | 'flush', kind: 'chain' | 'set' | 'map' | 'element' | 'rule', about: object): void {
    this.commands.push({ [verb]: { [kind]: { family: this.#family, table: this.#table, ...about } } });
  }

  everything(table: NftTable): readonly NftCommand[] {
    const { family, name } = table;
    this.commands.push(...nftRemoval(table), { add: { table: { family, name } } });
    this.additions({ ...table, chains: new Map(), sets: new Map() }, table);
    return this.commands;
  }

  /** Sets and chains first, because rules and elements name them. */
  additions(before: NftTable, next: NftTable): void {
    for (const [name, { elements: _, ...set }] of next.sets) {
      if (!before.sets.has(name)) this.add('add', kindOf(set), { name, ...set });
    }
    for (const [name, { hook }] of next.chains) {
      if (!before.chains.has(name)) this.add('add', 'chain', { name, ...hook });
    }
    for (const [chain, { rules }] of next.chains) {
      const old = before.chains.get(chain)?.rules;
      if (old !== undefined && isSame(old, rules)) continue;
      this.rules(chain, rules, old !== undefined && old.length > 0);
    }
    for (const [name, { elements }] of next.sets) {
      const old = before.sets.get(name)?.elements ?? new Map<string, unknown>();
      const changed = [...elements].filter(([key, element]) => !isSame(old.get(key), element));
      // An element of a map cannot be changed.
      this.#elements(
        'delete',
        name,
        changed.flatMap(([key]) => (old.has(key) ? [old.get(key)] : [])),
      );
      this.#elements(
        'add',
        name,
        changed.map(([, element]) => element),
      );
    }
  }

  rules(chain: string, rules: readonly NftRule[], isReplaced: boolean): void {
    if (isReplaced) this.add('flush', 'chain', { name: chain });
    for (const expr of rules) this.add('add', 'rule', { chain, expr });
  }

  removals(before: NftTable, next: NftTable, chains: readonly string[]): void {
    for (const [name, { elements }] of before.sets) {
      const kept = next.sets.get(name)?.elements;
      if (kept === undefined) continue;
      this.#elements(
        'delete',
        name,
        [...elements].flatMap(([key, element]) => (kept.has(key) ? [] : [element])),
      );
    }
    for (const name of chains) this.add('flush', 'chain', { name });
    for (const [name, set] of before.sets) if (!next.sets.has(name)) this.add('delete', kindOf(set), { name });
  }

  #elements(verb: 'add' | 'delete', name: string, elem: readonly unknown[]): void {
    if (elem.length > 0) this.add(verb, 'element', { name, elem });
  }
}

const kindOf = ({ map }: Pick<NftSet, 'map'>): 'map' | 'set' => (map === undefined ? 'set' : 'map');
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
