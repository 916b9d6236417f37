import { schemaTable } from '../../kubernetes/schema/schema-table.ts';
import { typeTable } from '../../kubernetes/schema/type-table.ts';
import { type ProtobufTable, protobufTable } from '../../kubernetes/wire/protobuf-table.ts';
import { LEASE_TABLE } from '../generated/lease-table.ts';

const TYPES = typeTable(LEASE_TABLE);

/** What a heartbeat reads: no other kind is loaded. */
export const leaseSchema = schemaTable(TYPES).struct('coordination/v1.Lease');
export const leaseMessages: ProtobufTable = protobufTable(TYPES);
