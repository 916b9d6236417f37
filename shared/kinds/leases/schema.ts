import { type ProtobufTable, protobufTable } from '../../kubernetes/protobuf-table.ts';
import { schemaTable, typeTable } from '../../kubernetes/type-table.ts';
import { LEASE_TABLE } from '../generated/lease-table.ts';

const TYPES = typeTable(LEASE_TABLE);

/** What a heartbeat reads: no other kind is loaded. */
export const leaseSchema = schemaTable(TYPES).struct('coordination/v1.Lease');
export const leaseMessages: ProtobufTable = protobufTable(TYPES);
