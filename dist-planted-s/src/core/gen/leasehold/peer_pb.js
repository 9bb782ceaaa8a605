// How servers of one core introduce themselves to each other. What follows is framed by hand: see server/peers/codec.ts.
import { fileDesc, messageDesc } from "@bufbuild/protobuf/codegenv2";
/**
 * Describes the file leasehold/peer.proto.
 */
export const file_leasehold_peer = /*@__PURE__*/ fileDesc("ChRsZWFzZWhvbGQvcGVlci5wcm90bxIObGVhc2Vob2xkLmNvcmUiiQEKCVBlZXJIZWxsbxIPCgd2ZXJzaW9uGAEgASgNEg8KB2NsdXN0ZXIYAiABKAQSDAoEZnJvbRgDIAEoBBIKCgJ0bxgEIAEoBBIQCghzbmFwc2hvdBgFIAEoCBIMCgRuYW1lGAYgASgJEhIKCmNsaWVudFVSTHMYByADKAkSDAoEZGlzaxgIIAEoBCI9CgtQZWVyV2VsY29tZRIPCgd2ZXJzaW9uGAIgASgNEg8KB3JlZnVzYWwYASABKAkSDAoEZGlzaxgDIAEoBGIGcHJvdG8z");
/**
 * Describes the message leasehold.core.PeerHello.
 * Use `create(PeerHelloSchema)` to create a new message.
 */
export const PeerHelloSchema = /*@__PURE__*/ messageDesc(file_leasehold_peer, 0);
/**
 * Describes the message leasehold.core.PeerWelcome.
 * Use `create(PeerWelcomeSchema)` to create a new message.
 */
export const PeerWelcomeSchema = /*@__PURE__*/ messageDesc(file_leasehold_peer, 1);
