! A Fortran program's formatted and stream output.
program writer
  integer :: i
  open (unit=10, file='out.txt', status='replace')
  do i = 1, 100
    write (10, '(i8)') i
  end do
  close (10)
  open (unit=11, file='raw.bin', access='stream', form='unformatted', status='new')
  write (11) (real(i, 8), i = 1, 1000)
end program
