// Reads the few kinds of MessagePack that a reply in the store is made of; strings are Buffers.
const INTEGERS = { 0xcc: ['readUInt8', 1], 0xcd: ['readUInt16BE', 2], 0xce: ['readUInt32BE', 4], 0xd0: ['readInt8', 1],
  0xd1: ['readInt16BE', 2], 0xd2: ['readInt32BE', 4], 0xca: ['readFloatBE', 4], 0xcb: ['readDoubleBE', 8] };
const STRINGS = { 0xd9: ['readUInt8', 1], 0xda: ['readUInt16BE', 2], 0xdb: ['readUInt32BE', 4], 0xc4: ['readUInt8', 1],
  0xc5: ['readUInt16BE', 2], 0xc6: ['readUInt32BE', 4] };

export function unpack(data) {
  let at = 0;
  const number = ([read, size]) => {
    at += size;
    return data[read](at - size);
  };
  const value = () => {
    const kind = data.readUInt8(at++);
    if (kind < 0x80) return kind;
    if (kind >= 0xe0) return kind - 256;
    if ((kind & 0xf0) === 0x90 || kind === 0xdc) {
      const count = kind === 0xdc ? number(['readUInt16BE', 2]) : kind & 15;
      return Array.from({ length: count }, value);
    }
    if ((kind & 0xe0) === 0xa0 || STRINGS[kind]) {
      const size = STRINGS[kind] ? number(STRINGS[kind]) : kind & 31;
      if (at + size > data.length) throw new RangeError('a string is longer than what there is');
      at += size;
      return data.subarray(at - size, at);
    }
    if (INTEGERS[kind]) return number(INTEGERS[kind]);
    if (kind === 0xc0) return null;
    if (kind === 0xc2 || kind === 0xc3) return kind === 0xc3;
    throw new RangeError(`an unexpected kind 0x${kind.toString(16)}`);
  };
  return value();
}
