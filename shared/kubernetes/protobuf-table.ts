/** The protobuf messages of the table of types (type-table.ts). */
import { type TableField, type TableScalar, type TypeTable, tableGroupVersion } from './type-table.ts';

/** Both lengths of a whole number are one on the wire. */
export type ProtoScalar = Exclude<TableScalar, 'int32' | 'int64'> | 'int';

export interface ProtoField {
  /** Name in JSON; '' for a message that is inlined. */
  readonly name: string;
  /** A scalar, or the name of a message. */
  readonly type: { readonly scalar: ProtoScalar } | { readonly message: string };
  readonly shape: 'single' | 'list' | 'map';
  /** Go clients send it although it is empty, and JSON omits it then. */
  readonly omitsEmpty: boolean;
}

/** Fields by number. */
export type ProtoMessage = ReadonlyMap<number, ProtoField>;

export interface ProtobufTable {
  /** The message of a kind, by the apiVersion and kind of a request. Undefined for a kind that is read as JSON only. */
  readonly messageOfKind: (apiVersion: string, kind: string) => ProtoMessage | undefined;
  /** @throws Error for a name that the table refers to and does not have, a fault of ours */
  readonly messageNamed: (name: string) => ProtoMessage;
  /** Whether the message stands for the last of its fields that is present. */
  readonly isUnion: (name: string) => boolean;
}

export function protobufTable(table: TypeTable): ProtobufTable {
  const made = new Map<string, ProtoMessage>();
  function find(name: string): ProtoMessage | undefined {
    const known = made.get(name);
    if (known !== undefined) return known;
    const entry = table.find(name);
    if (entry === undefined) return undefined;
    const message = new Map(entry.fields.map((field) => [field.number, fieldOf(field, entry.head)] as const));
    made.set(name, message);
    return message;
  }
  return {
    messageOfKind(apiVersion, kind) {
      // Clients send DeleteOptions with the apiVersion of the deleted object.
      if (kind === 'DeleteOptions') return find('meta/v1.DeleteOptions');
      const name = `${tableGroupVersion(apiVersion)}.${kind}`;
      return table.find(name)?.head === 'kind' ? find(name) : undefined;
    },
    messageNamed(name) {
      const message = find(name);
      if (message === undefined) throw new Error(`the protobuf table has no message ${name}`);
      return message;
    },
    isUnion: (name) => table.find(name)?.head === 'union',
  };
}

const fieldOf = ({ name, shape, type, presence }: TableField, head: string): ProtoField => ({
  name,
  shape,
  omitsEmpty: head === 'omits' && presence === 'optional',
  type:
    type.kind === 'struct'
      ? { message: type.name }
      : { scalar: type.kind === 'named' ? 'string' : wireOf(type.scalar) },
});

const wireOf = (scalar: TableScalar): ProtoScalar => (scalar === 'int32' || scalar === 'int64' ? 'int' : scalar);
