//! The records between a template and its parent: of fixed length, some with descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The maximum number of descriptors that come with a record.
const DESCRIPTORS: usize = 3;

/// The length of a record, in bytes: its kind, the number of the worker, a status.
pub(crate) const BYTES: usize = 1 + size_of::<u64>() + size_of::<i32>();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// From the template: it has booted.
    Ready,
    /// To the template: fork the worker of this number, with its two sockets and the memory
    /// for its output attached.
    Fork(u64),
    /// From the template: the worker exists; its descriptor is attached.
    Forked(u64),
    /// From the template: the worker cannot be forked; this is the error number.
    Failed(u64, i32),
    /// From the template: the worker has ended, with this status as the kernel reported it.
    Ended(u64, i32),
}

impl Record {
    pub(crate) fn encode(self) -> [u8; BYTES] {
        let (kind, number, status) = match self {
            Self::Ready => (0, 0, 0),
            Self::Fork(number) => (1, number, 0),
            Self::Forked(number) => (2, number, 0),
            Self::Failed(number, error) => (3, number, error),
            Self::Ended(number, status) => (4, number, status),
        };
        let mut bytes = [kind; BYTES];
        bytes[1..9].copy_from_slice(&u64::to_le_bytes(number));
        bytes[9..].copy_from_slice(&i32::to_le_bytes(status));
        bytes
    }

    pub(crate) fn decode(bytes: [u8; BYTES]) -> Option<Self> {
        let [kind, rest @ ..] = bytes;
        let (number, rest) = rest.split_first_chunk()?;
        let (number, status) = (u64::from_le_bytes(*number), rest.first_chunk()?);
        let status = i32::from_le_bytes(*status);
        Some(match kind {
            0 => Self::Ready,
            1 => Self::Fork(number),
            2 => Self::Forked(number),
            3 => Self::Failed(number, status),
            4 => Self::Ended(number, status),
            _ => return None,
        })
    }

    pub(crate) fn send(self, socket: &UnixStream, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("there is no room for the descriptors"));
        }
        let bytes = self.encode();
        let sent =
            sendmsg(socket.as_fd(), &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        if sent == BYTES { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Waits for a record; `None` if the peer is gone.
    pub(crate) fn receive(socket: &UnixStream) -> io::Result<Option<(Self, Vec<OwnedFd>)>> {
        let mut bytes = [0; BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
        let received = loop {
            match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result?.bytes,
            }
        };
        let mut fds = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        match received {
            0 => Ok(None),
            BYTES => {
                let record = Self::decode(bytes).ok_or(io::ErrorKind::InvalidData)?;
                Ok(Some((record, fds)))
            }
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_arrive_one_by_one_with_their_descriptors() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let sent = [
            Record::Ready,
            Record::Fork(u64::MAX),
            Record::Forked(1),
            Record::Failed(2, -3),
            Record::Ended(4, i32::MIN),
        ];
        for record in sent {
            let fds: &[_] = if record == Record::Fork(u64::MAX) {
                &[ours.as_fd(), theirs.as_fd()]
            } else {
                &[]
            };
            record.send(&ours, fds).unwrap();
        }
        drop(ours);
        for record in sent {
            let (received, fds) = Record::receive(&theirs).unwrap().unwrap();
            let expected = if record == Record::Fork(u64::MAX) { 2 } else { 0 };
            assert_eq!((received, fds.len()), (record, expected));
        }
        assert!(Record::receive(&theirs).unwrap().is_none());
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        use std::io::Write;
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&[9; BYTES]).unwrap();
        assert!(Record::receive(&theirs).is_err());
        ours.write_all(&[0; 3]).unwrap();
        drop(ours);
        assert!(Record::receive(&theirs).is_err());
    }
}
