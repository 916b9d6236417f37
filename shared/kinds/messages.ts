/** Protobuf messages of Kubernetes' own kinds. The API loads them with the first body in protobuf. */
import { type ProtobufTable, protobufTable } from '../kubernetes/protobuf-table.ts';
import { DEFINITION_TYPES } from './customresourcedefinitions/messages.ts';
import { TYPES } from './upstream.ts';

export const messages: ProtobufTable = protobufTable({
  find: (name) => TYPES.find(name) ?? DEFINITION_TYPES.find(name),
});
