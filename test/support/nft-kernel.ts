/** The tables of a kernel that refuses what is not there, or still used. A transaction is applied as a whole or not. */
import type { NftCommand, NftTable } from '../../agent/rules/services/nft-table.ts';

interface Table {
  readonly chains: Map<string, unknown[]>;
  readonly sets: Map<string, Map<string, unknown>>;
}

/** Chains with rules, and sets with their elements, in no order. */
export interface NftContent {
  readonly chains: Readonly<Record<string, unknown>>;
  readonly sets: Readonly<Record<string, readonly string[]>>;
}

type About = Readonly<Record<string, unknown>>;

const refuse = (what: string): never => {
  throw new Error(`nft: No such file or directory: ${what}`);
};
const keyOf = (element: unknown): string => JSON.stringify(Array.isArray(element) ? element[0] : element);
const textsOf = (elements: Iterable<unknown>): string[] =>
  [...elements].map((element) => JSON.stringify(element)).toSorted();

export class NftKernel {
  #tables = new Map<string, Table>();
  /** Commands of each transaction that was applied. */
  readonly applied: (readonly NftCommand[])[] = [];

  /** @throws Error, and nothing has changed */
  apply(commands: readonly NftCommand[]): void {
    const before = structuredClone(this.#tables);
    try {
      for (const command of commands) {
        const [verb = '', about = {}] = Object.entries(command)[0] ?? [];
        const [kind = '', one = {}] = Object.entries(about as Record<string, About>)[0] ?? [];
        this.#apply(`${verb} ${kind}`, one);
      }
      this.applied.push(commands);
    } catch (cause) {
      this.#tables = before;
      throw cause;
    }
  }

  /** Another program removes everything. */
  flushRuleset(): void {
    this.#tables.clear();
  }

  /** @param table such as `ip nodekeeper` */
  content(table: string): NftContent | undefined {
    const found = this.#tables.get(table);
    if (found === undefined) return undefined;
    return {
      chains: Object.fromEntries([...found.chains].filter(([, rules]) => rules.length > 0)),
      sets: Object.fromEntries([...found.sets].map(([name, set]) => [name, textsOf(set.values())])),
    };
  }

  static contentOf({ chains, sets }: NftTable): NftContent {
    return {
      chains: Object.fromEntries(
        [...chains].flatMap(([name, { rules }]) => (rules.length === 0 ? [] : [[name, [...rules]]])),
      ),
      sets: Object.fromEntries([...sets].map(([name, { elements }]) => [name, textsOf(elements.values())])),
    };
  }

  #apply(what: string, one: About): void {
    const name = String(one['name']);
    const tableName = `${one['family']} ${one['table'] ?? name}`;
    if (what === 'add table') {
      if (!this.#tables.has(tableName)) this.#tables.set(tableName, { chains: new Map(), sets: new Map() });
      return;
    }
    if (what === 'delete table') {
      if (!this.#tables.delete(tableName)) refuse(tableName);
      return;
    }
    const { chains, sets } = this.#tables.get(tableName) ?? refuse(tableName);
    const elements = (one['elem'] ?? []) as readonly unknown[];
    switch (what) {
      case 'add chain':
        if (!chains.has(name)) chains.set(name, []);
        return;
      case 'flush chain':
        if (!chains.has(name)) refuse(name);
        chains.set(name, []);
        return;
      case 'delete chain':
        if (chains.get(name)?.length !== 0) refuse(name);
        if (
          textsOf([...sets.values()].flatMap((set) => [...set.values()]))
            .join()
            .includes(`"target":"${name}"`)
        ) {
          refuse(`${name} is used`);
        }
        chains.delete(name);
        return;
      case 'add rule':
        (chains.get(String(one['chain'])) ?? refuse(String(one['chain']))).push(one['expr']);
        return;
      case 'add set':
      case 'add map':
        if (!sets.has(name)) sets.set(name, new Map());
        return;
      case 'delete set':
      case 'delete map':
        if (!sets.delete(name)) refuse(name);
        return;
      case 'add element':
        for (const each of elements) {
          if (sets.get(name)?.has(keyOf(each)) !== false) refuse(`${name} has ${keyOf(each)}`);
          const target = Array.isArray(each) ? (each[1].goto?.target ?? undefined) : undefined;
          if (target !== undefined && !chains.has(target)) refuse(target);
          sets.get(name)?.set(keyOf(each), each);
        }
        return;
      case 'delete element':
        for (const each of elements) if (sets.get(name)?.delete(keyOf(each)) !== true) refuse(keyOf(each));
        return;
      default:
        refuse(what);
    }
  }
}
